"""The verdict that the reviews of a proof add up to."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from docvqa_site.challenge.rankings import Shortfall
from docvqa_site.reviews.models import COUNTED_IN, Decision
from docvqa_site.reviews.tallies import rejected, verified
from docvqa_site.submissions.models import REJECTED, UNACCEPTED_REVISION
from docvqa_site.ui.conditions import holds
from evaluator.messages.states import ResultStatus as ResultStatus

AWAITS_REVIEW = "proof rejected; the revised proof awaits review"


class Tally(NamedTuple):
    """How many reviewers have made each decision, by the names of a submission's columns.

    `rejection_stands` says that the only decision is a rejection, which nobody has contradicted in time, and
    `revises_rejected` that the proof is a revision of one that took the rank.
    """

    acceptances: int = 0
    rejections: int = 0
    change_requests: int = 0
    rejection_stands: bool = False
    revises_rejected: bool = False

    @property
    def is_proposal(self) -> bool:
        """Whether one reviewer rejects the proof, and no other has decided."""
        return self.rejections == self.decisions == 1

    @property
    def is_withheld(self) -> bool:
        """Whether the rank is withheld until a reviewer accepts a revised proof."""
        return all(getattr(self, name) == value for name, value in UNACCEPTED_REVISION.items())

    @property
    def decisions(self) -> int:
        """How many reviewers have decided."""
        return self.acceptances + self.rejections + self.change_requests


@dataclass(frozen=True)
class Verdict:
    """The status of a submission's results, with the reason where there is a proof to judge.

    Attributes:
        detail: What is to be said beside the label of the status.
        accepted: How many reviewers have accepted the proof, of `required` that verify it.
        asks_changes: Whether the team is to revise the proof, which is under review until then.
        is_proposal: Whether one reviewer proposes to reject it, and nobody else has decided.
        is_split: Whether reviewers disagree, so that another one decides.
        rejections: The reasons of those who rejected a rejected proof, as they wrote them.
        is_withheld: Whether the rank is withheld, though the review is open, until a reviewer accepts a revised proof.
    """

    status: ResultStatus
    detail: str = ""
    accepted: int = 0
    required: int = 0
    asks_changes: bool = False
    is_proposal: bool = False
    is_split: bool = False
    rejections: tuple[str, ...] = ()
    is_withheld: bool = False

    def status_of(self, shortfall: Shortfall | None) -> str:
        """Return the status of a run with this shortfall, in words; of one that was found invalid, how."""
        return shortfall.short if shortfall and shortfall.is_invalid else self.status.label

    @cached_property
    def reason(self) -> str:
        """The detail as it stands alone, so with the status, which an open review says by itself."""
        return self._labeled(self.status.label) if self.detail and not self.is_open else self.detail

    @property
    def sentence(self) -> str:
        """The status with its detail; that of a rejection is its reviewers' own text, which is shown elsewhere."""
        label = self.status.label.capitalize()
        return f"{label}." if self.rejection else f"{self._labeled(label)}."

    @property
    def outcome(self) -> str:
        """The status in a sentence, with what it does to the rank."""
        return f"{self.status.label}{'; the result no longer has a rank' if self.rejection else ''}"

    @property
    def is_open(self) -> bool:
        """Whether reviewers are still to decide."""
        return self.status is ResultStatus.PROVISIONAL

    def _labeled(self, label: str) -> str:
        return f"{label}{' ' if self.status is ResultStatus.VERIFIED else ': '}{self.detail}"

    @property
    def rejection(self) -> str:
        """Why the proof withholds the rank; empty if it doesn't."""
        return rejection_of(self.status, self.reason, is_withheld=self.is_withheld)


NOT_REVIEWED = Verdict(ResultStatus.SCORED)


def rejection_of(status: ResultStatus, reason: str, *, is_withheld: bool = False) -> str:
    """Return why the proof of a result of this status, with this reason, withholds the rank; empty if it doesn't."""
    if is_withheld:
        return AWAITS_REVIEW
    return reason or "proof rejected" if status is ResultStatus.REJECTED else ""


@lru_cache(maxsize=1_000)
def status_of(tally: Tally, required: int) -> ResultStatus:
    """Return the status that the decisions add up to, where `required` acceptances verify a result.

    Two rejections withhold the rank, unless more reviewers accept. One alone proposes that: it does once it stands,
    since nobody gave a second opinion in time. Acceptances verify the result if they outnumber everything else.
    """
    counts = tally._asdict()
    counts["proof_rejected"] = holds(REJECTED, counts)
    if holds(rejected(), counts):
        return ResultStatus.REJECTED
    return ResultStatus.VERIFIED if holds(verified(required), counts) else ResultStatus.PROVISIONAL


def verdict(
    decisions: Iterable[tuple[Decision, str]],
    required: int | None,
    *,
    rejection_stands: bool = False,
    revises_rejected: bool = False,
) -> Verdict:
    """Return the verdict on a proof, from each reviewer's decision with its reason; see `verdict_of`."""
    decided = list(decisions)
    counts = {COUNTED_IN[one]: sum(found == one for found, _ in decided) for one in COUNTED_IN}
    tally = Tally(**counts, rejection_stands=rejection_stands, revises_rejected=revises_rejected)
    return verdict_of(
        tally, required, [reason for decision, reason in decided if decision == Decision.REJECTED]
    )


def verdict_of(tally: Tally, required: int | None, rejections: Iterable[str] = ()) -> Verdict:
    """Return the verdict on a proof, from the counted decisions and the reasons of the rejections among them.

    `required` is None where no proof is needed.
    """
    if required is None:
        return NOT_REVIEWED
    # Reviewers who agree may have written the same.
    return _verdict_of(tally, required, tuple(dict.fromkeys(rejections)))


# A long board has few different ones.
@lru_cache(maxsize=1_000)
def _verdict_of(tally: Tally, required: int, rejections: tuple[str, ...]) -> Verdict:
    status = status_of(tally, required)
    is_open = status is ResultStatus.PROVISIONAL
    asks_changes = is_open and tally.change_requests > 0
    is_proposal = is_open and tally.is_proposal
    is_withheld = is_open and tally.is_withheld
    is_split = is_open and not is_proposal and tally.rejections > 0
    reasons = rejections if status is ResultStatus.REJECTED else ()
    if status is ResultStatus.REJECTED:
        detail = " · ".join(reasons)
    elif status is ResultStatus.VERIFIED:
        detail = f"by {tally.acceptances} reviewers"
    elif asks_changes:
        detail = "changes to the proof requested" + (
            "; another reviewer proposes to reject it" if is_split else ""
        )
    elif is_proposal:
        detail = "one reviewer proposes to reject the proof; a second opinion is due"
    elif is_split:
        detail = (
            f"reviewers disagree; {'a third' if tally.decisions == 2 else 'another'} reviewer needs to decide"
        )
    elif is_withheld:
        detail = AWAITS_REVIEW
    else:
        detail = f"proof accepted by {tally.acceptances} of {required} reviewers"
    return Verdict(
        status, detail, tally.acceptances, required, asks_changes, is_proposal, is_split, reasons, is_withheld
    )
