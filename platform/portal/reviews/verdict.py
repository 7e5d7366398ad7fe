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
class Verdict:
    """The status of a submission's results, with the reason where there is a proof to judge.

    Attributes:
        accepted: How many reviewers have accepted the proof, of `required` that verify it.
    """

    status: ResultStatus
    reason: str = ""
    accepted: int = 0
    required: int = 0


def verdict(decisions: Iterable[tuple[Decision, str]], required: int) -> Verdict:
    """Return the verdict on a proof, from each reviewer's decision with its reason.

    One rejection takes the result's rank until its reviewer decides again; `required` acceptances verify it.
    """
    decided = list(decisions)
    accepted = sum(decision == Decision.ACCEPTED for decision, _ in decided)
    rejections = [reason.rstrip(" .") for decision, reason in decided if decision == Decision.REJECTED]
    if rejections:
        return Verdict(ResultStatus.REJECTED, "proof rejected: " + "; ".join(rejections), accepted, required)
    if accepted >= required:
        return Verdict(ResultStatus.VERIFIED, f"proof accepted by {accepted} reviewers", accepted, required)
    reason = f"proof accepted by {accepted} of {required} reviewers"
    return Verdict(ResultStatus.PROVISIONAL, reason, accepted, required)
