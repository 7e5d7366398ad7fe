"""The order of a queue: round robin between teams, one submission each in turn.

Every submission that joins a queue gets a *turn*, a number; the queue serves turns in ascending order and, within a
turn, whoever joined first. The queue's own turn is that of the last step it has served. This is start-time fair
queueing (Goyal, Vin and Cheng 1996) with submissions of equal size:

- A team that has nothing waiting joins at the queue's turn, so it waits for one submission of each other team at most,
  however many of them the others have sent.
- Each further submission of a team joins one turn later, so within a team it is first in, first out.
- Nobody is overtaken by a team that joins the same turn later, so a place in the queue doesn't move back by that.
- The runs of one submission share its turn.

A run has its turn as long as it stays in a queue. Its later steps there therefore go before runs that have not begun:
what is begun is finished first, while its files are in the worker's cache, and fewer runs are half done. It has paid
for that with its turn, so this favors no team. Scoring has a queue of its own, in which a submission takes a turn
again.
"""

from dataclasses import dataclass
from uuid import UUID

# Before it there is room for `retry_turn`.
FIRST_TURN = 1


@dataclass(frozen=True)
class TakenTurn:
    """The last turn that a team has taken in a queue, and the submission for which it did."""

    turn: int
    submission: UUID


def next_turn(current: int, last: TakenTurn | None, submission: UUID) -> TakenTurn:
    """Return the turn that a submission takes when one of its runs joins a queue.

    Args:
        current: The queue's turn.
        last: The last turn that the submission's team has taken in this queue; None before its first.
        submission: The submission.
    """
    if last is None:
        return TakenTurn(current, submission)
    earliest = last.turn if last.submission == submission else last.turn + 1
    return TakenTurn(max(current, earliest), submission)


def retry_turn(current: int) -> int:
    """Return the turn of a run that is tried again: before all that wait, since it has waited for its turn once."""
    return current - 1
