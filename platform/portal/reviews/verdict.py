"""The verdict that the reviews of a proof add up to."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from portal.reviews.models import Decision


class ResultStatus(StrEnum):
    """How far a result can be relied on; `scored` where the track requires no proof."""

    SCORED = "scored"
    PROVISIONAL = "provisional"
    VERIFIED = "verified"
    REJECTED = "rejected"

    @property
    def label(self) -> str:
        """The status in the words of the pages."""
        return LABELS[self]


LABELS = {
    ResultStatus.SCORED: "evaluated",
    ResultStatus.PROVISIONAL: "under review",
    ResultStatus.VERIFIED: "verified",
    ResultStatus.REJECTED: "proof rejected",
}


@dataclass(frozen=True)
class Tally:
    """How many reviewers have made each decision; the same counts are made in SQL by `portal.reviews.tallies`."""

    accepted: int = 0
    rejected: int = 0
    changes: int = 0

    @property
    def objections(self) -> int:
        """How many reviewers have not accepted what they decided on."""
        return self.rejected + self.changes


@dataclass(frozen=True)
class Verdict:
    """The status of a submission's results, with the reason where there is a proof to judge.

    Attributes:
        accepted: How many reviewers have accepted the proof, of `required` that verify it.
        asks_changes: Whether the team is to revise the proof, which is under review until then.
        is_split: Whether reviewers disagree, so that another one decides.
    """

    status: ResultStatus
    reason: str = ""
    accepted: int = 0
    required: int = 0
    asks_changes: bool = False
    is_split: bool = False


# In the order of a tally.
_COUNTED = (Decision.ACCEPTED, Decision.REJECTED, Decision.CHANGES_REQUESTED)


def status_of(tally: Tally, required: int) -> ResultStatus:
    """Return the status that the decisions add up to; `portal.reviews.tallies` has the same rules in SQL.

    One rejection withholds the rank while nobody has decided otherwise. Where reviewers disagree, two rejections do,
    unless more reviewers accept. `required` acceptances verify the result if they outnumber everything else.
    """
    if tally.rejected and not tally.accepted and not tally.changes:
        return ResultStatus.REJECTED
    if tally.rejected >= max(2, tally.accepted):
        return ResultStatus.REJECTED
    if tally.accepted >= required and (tally.accepted > tally.objections or not tally.objections):
        return ResultStatus.VERIFIED
    return ResultStatus.PROVISIONAL


def verdict(decisions: Iterable[tuple[Decision, str]], required: int) -> Verdict:
    """Return the verdict on a proof, from each reviewer's decision with its reason; see `status_of`."""
    decided = list(decisions)
    tally = Tally(*(sum(found == one for found, _ in decided) for one in _COUNTED))
    return verdict_of(
        tally, required, [reason for decision, reason in decided if decision == Decision.REJECTED]
    )


def verdict_of(tally: Tally, required: int, rejections: Iterable[str] = ()) -> Verdict:
    """Return the verdict on a proof, from the counted decisions and the reasons of the rejections among them."""
    status = status_of(tally, required)
    is_open = status is ResultStatus.PROVISIONAL
    asks_changes = is_open and tally.changes > 0
    is_split = is_open and not asks_changes and tally.rejected > 0
    if status is ResultStatus.REJECTED:
        reason = "proof rejected: " + "; ".join(reason.rstrip(" .") for reason in rejections)
    elif status is ResultStatus.VERIFIED:
        reason = f"proof accepted by {tally.accepted} reviewers"
    elif asks_changes:
        reason = "changes to the proof requested"
    elif is_split:
        reason = f"reviewers disagree; {'a third' if tally.accepted + tally.objections == 2 else 'another one'} decides"
    else:
        reason = f"proof accepted by {tally.accepted} of {required} reviewers"
    return Verdict(status, reason, tally.accepted, required, asks_changes, is_split)
