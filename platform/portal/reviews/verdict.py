"""What the reviews of a proof amount to."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from portal.reviews.models import Decision


class Status(StrEnum):
    """How far a result can be relied on."""

    PROVISIONAL = "provisional"
    VERIFIED = "verified"
    WITHHELD = "withheld"


@dataclass(frozen=True)
class Verdict:
    status: Status
    reason: str


def verdict(decisions: Iterable[tuple[Decision, str]], required: int) -> Verdict:
    """The verdict on a proof, from each reviewer's decision with its reason.

    One rejection withholds the result until its reviewer decides again; `required` acceptances verify it.
    """
    decided = list(decisions)
    rejections = [reason for decision, reason in decided if decision == Decision.REJECTED]
    if rejections:
        return Verdict(Status.WITHHELD, "proof rejected: " + "; ".join(rejections))
    accepted = sum(decision == Decision.ACCEPTED for decision, _ in decided)
    if accepted >= required:
        return Verdict(Status.VERIFIED, f"proof accepted by {accepted} reviewers")
    return Verdict(Status.PROVISIONAL, f"proof accepted by {accepted} of {required} reviewers")
