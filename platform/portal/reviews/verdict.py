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
    WITHHELD = "withheld"


@dataclass(frozen=True)
class Verdict:
    """The status of a submission's results, with the reason where there is a proof to judge."""

    status: ResultStatus
    reason: str = ""


def verdict(decisions: Iterable[tuple[Decision, str]], required: int) -> Verdict:
    """Return the verdict on a proof, from each reviewer's decision with its reason.

    One rejection withholds the result until its reviewer decides again; `required` acceptances verify it.
    """
    decided = list(decisions)
    rejections = [reason for decision, reason in decided if decision == Decision.REJECTED]
    if rejections:
        return Verdict(ResultStatus.WITHHELD, "proof rejected: " + "; ".join(rejections))
    accepted = sum(decision == Decision.ACCEPTED for decision, _ in decided)
    if accepted >= required:
        return Verdict(ResultStatus.VERIFIED, f"proof accepted by {accepted} reviewers")
    return Verdict(ResultStatus.PROVISIONAL, f"proof accepted by {accepted} of {required} reviewers")
