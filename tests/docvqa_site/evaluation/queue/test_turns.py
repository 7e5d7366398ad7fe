from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.evaluation.queue.turns import FIRST_TURN, TakenTurn, next_turn, retry_turn


@dataclass
class Queue:
    """A queue as the dispatcher keeps it: runs are named by team, submission and run."""

    turn: int = FIRST_TURN
    joined: int = 0
    taken: dict[str, TakenTurn] = field(default_factory=dict)
    waiting: list[tuple[int, int, str]] = field(default_factory=list)

    def join(self, name: str) -> None:
        team, submission = name.split()[:2]
        turn = next_turn(self.turn, self.taken.get(team), UUID(int=hash((team, submission)) % 2**64))
        self.taken[team] = turn
        self.joined += 1
        self.waiting.append((turn.turn, self.joined, name))

    def serve(self) -> str:
        turn, ticket, name = min(self.waiting)
        self.waiting.remove((turn, ticket, name))
        self.turn = max(self.turn, turn)
        return name

    def serve_all(self) -> list[str]:
        return [self.serve() for _ in range(len(self.waiting))]


def queue_of(*names: str) -> Queue:
    queue = Queue()
    for name in names:
        queue.join(name)
    return queue


def test_one_team_is_first_in_first_out():
    assert queue_of("A 1", "A 2", "A 3").serve_all() == ["A 1", "A 2", "A 3"]


def test_teams_take_turns_in_the_order_in_which_they_came():
    queue = queue_of("A 1", "A 2", "B 1", "A 3", "C 1", "B 2")
    assert queue.serve_all() == ["A 1", "B 1", "C 1", "A 2", "B 2", "A 3"]


def test_a_team_that_floods_the_queue_delays_the_others_by_one_of_its_submissions():
    flood = [f"A {number}" for number in range(25)]
    others = [f"{team} 1" for team in "BCDEFGHIJ"]
    served = queue_of(*flood, *others).serve_all()
    assert served == ["A 0", *others, *flood[1:]]


def test_who_comes_while_a_flood_is_served_waits_for_one_of_its_submissions_only():
    queue = queue_of(*(f"A {number}" for number in range(25)))
    for _ in range(10):
        queue.serve()
    queue.join("B 1")
    assert "B 1" in [queue.serve(), queue.serve()]


def test_who_has_just_been_served_goes_behind_those_who_came_at_the_same_time():
    queue = queue_of("A 1")
    queue.serve()
    queue.join("A 2")
    queue.join("B 1")
    assert queue.serve_all() == ["B 1", "A 2"]


def test_a_team_that_was_away_for_long_has_saved_nothing_up():
    queue = queue_of("A 1", *(f"B {number}" for number in range(9)))
    for _ in range(8):
        queue.serve()
    for number in range(2, 6):
        queue.join(f"A {number}")
    assert queue.serve_all() == ["A 2", "B 7", "A 3", "B 8", "A 4", "A 5"]


def test_the_runs_of_a_submission_share_its_turn():
    queue = queue_of("A 1 x", "A 1 y", "A 1 z", "A 2 x", "B 1 x", "B 1 y")
    assert queue.serve_all() == ["A 1 x", "A 1 y", "A 1 z", "B 1 x", "B 1 y", "A 2 x"]


def test_nobody_who_waits_is_overtaken_by_a_team_that_comes_later():
    queue = queue_of("A 1", "B 1", "C 1")
    queue.serve()
    queue.join("D 1")
    assert queue.serve_all() == ["B 1", "C 1", "D 1"]


def test_a_run_that_is_tried_again_goes_before_all_that_wait():
    queue = queue_of("A 1", "B 1", "C 1")
    queue.serve()
    queue.waiting.append((retry_turn(queue.turn), queue.joined + 1, "A 1"))
    assert queue.serve() == "A 1"
    assert retry_turn(FIRST_TURN) >= 0  # the column has no negative numbers


@given(st.lists(st.sampled_from(["A", "B", "C", "D", "serve"]), max_size=80))
def test_while_a_team_waits_each_other_team_is_served_twice_at_most(events):
    """Another team may have one submission of an earlier turn, and one of the same turn that came first."""
    queue = Queue()
    counts: Counter[str] = Counter()
    served: list[str] = []
    joined_at: dict[str, int] = {}
    for event in events:
        if event != "serve":
            name = f"{event} {counts[event]}"
            counts[event] += 1
            joined_at[name] = len(served)
            queue.join(name)
        elif queue.waiting:
            served.append(queue.serve())
    served += queue.serve_all()
    for team in "ABCD":
        own = [name for name in served if name.startswith(team)]
        assert own == sorted(own, key=lambda name: int(name.split()[1]))
    for team in "ABCD":
        times = [(served.index(name), joined_at[name]) for name in served if name.startswith(team)]
        previous = -1
        for served_at, came in times:
            # From when it is the first of its team to wait.
            heads = served[max(came, previous + 1) : served_at]
            assert all(count <= 2 for count in Counter(name[0] for name in heads).values())
            previous = served_at
