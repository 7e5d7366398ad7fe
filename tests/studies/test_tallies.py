from tests.studies.tallies import Tally, Trial, count, current, order, started, table, updated

CODES = {"a": "new", "b": "new"}
QUIET, LOUD = Trial([], 1.0), Trial(["noise-scale", "noise-mean"], 2.0)


def counted(tallies: list[Tally], trials: int) -> list[Tally]:
    """The tallies after counting to so many trials, all of them quiet."""
    for _, grown in count(tallies, CODES, trials, lambda name: QUIET):
        tallies = grown
    return tallies


def test_a_trial_is_added_to_those_before() -> None:
    tally = Tally(name="a", code="new").plus(QUIET).plus(LOUD).plus(LOUD)
    assert (tally.trials, tally.alarms, tally.longest_s) == (3, 2, 2.0)
    assert tally.found == {"noise-scale": 2, "noise-mean": 2}


def test_counting_goes_on_where_it_was_interrupted_with_those_that_have_the_fewest_first() -> None:
    known = [Tally(name="a", code="new", trials=2)]
    assert order(known, CODES, 3) == ["b", "b", "a", "b"]
    assert {tally.name: tally.trials for tally in counted(known, 3)} == {"a": 3, "b": 3}
    assert order(counted(known, 3), CODES, 3) == []


def test_each_trial_can_be_written_as_it_ends() -> None:
    written = [sum(tally.trials for tally in all_) for _, all_ in count([], CODES, 2, lambda name: QUIET)]
    assert written == [1, 2, 3, 4]


def test_trials_by_other_code_are_not_added_but_kept_until_as_many_are_made_again() -> None:
    known = [Tally(name="a", code="old", trials=2, alarms=1)]
    assert current(known, CODES) == [Tally(name="a", code="new"), Tally(name="b", code="new")]
    assert {(tally.code, tally.trials) for tally in counted(known, 1) if tally.name == "a"} == {
        ("old", 2),
        ("new", 1),
    }
    assert {(tally.code, tally.trials) for tally in counted(known, 2) if tally.name == "a"} == {("new", 2)}


def test_a_new_tally_replaces_none_of_another_name() -> None:
    other = Tally(name="b", code="old", trials=1)
    assert other in updated([other], Tally(name="a", code="new", trials=5))


def test_what_was_never_tried_is_listed_and_what_is_gone_is_not() -> None:
    known = [Tally(name="a", code="old", trials=2), Tally(name="gone", code="new", trials=2)]
    assert started(known, CODES) == [known[0], Tally(name="a", code="new"), Tally(name="b", code="new")]


def test_the_table_tells_trials_of_the_present_code_from_earlier_ones() -> None:
    tallies = [Tally(name="a", code="new").plus(LOUD), Tally(name="a", code="old", trials=7)]
    assert table(tallies, CODES) == [
        "| a | 1 of 1 | `noise-scale`: 1, `noise-mean`: 1 | 2.0 s | 0 of 7 |",
        "| b | not tried |  |  |  |",
    ]
