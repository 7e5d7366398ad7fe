"""The verdict that the reviews of a proof add up to."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache

from docvqa_site.reviews.models import COUNTED_IN, Decision
from docvqa_site.reviews.tallies import rejected, verified
from docvqa_site.submissions.models import REJECTED
from docvqa_site.ui.conditions import holds
from evaluator.messages.states import ResultStatus as ResultStatus


@dataclass(frozen=True)
class Tally:
    """How many reviewers have made each decision, by the names of a submission's columns.

    `rejection_stands` says that the only decision is a rejection, which nobody has contradicted in time.
    """

    acceptances: int = 0
    rejections: int = 0
    change_requests: int = 0
    rejection_stands: bool = False

    @property
    def is_proposal(self) -> bool:
        """Whether one reviewer rejects the proof, and no other has decided."""
        return self.rejections == self.decisions == 1

    @property
    def decisions(self) -> int:
        """How many reviewers have decided."""
        return self.acceptances + self.rejections + self.change_requests


@dataclass(frozen=True)
class Verdict:
    """The status of a submission's results, with the reason where there is a proof to judge.

    Attributes:
        accepted: How many reviewers have accepted the proof, of `required` that verify it.
        asks_changes: Whether the team is to revise the proof, which is under review until then.
        is_proposal: Whether one reviewer proposes to reject it, and nobody else has decided.
        is_split: Whether reviewers disagree, so that another one decides.
    """

    status: ResultStatus
    reason: str = ""
    accepted: int = 0
    required: int = 0
    asks_changes: bool = False
    is_proposal: bool = False
    is_split: bool = False

    @property
    def rejection(self) -> str:
        """Why the rank is withheld; empty unless the proof is rejected."""
        return rejection_of(self.status, self.reason)


def rejection_of(status: ResultStatus, reason: str) -> str:
    """Return why a result of this status, with this reason, has no rank; empty unless its proof is rejected."""
    return reason or "proof rejected" if status is ResultStatus.REJECTED else ""


@lru_cache(maxsize=1_000)
def status_of(tally: Tally, required: int) -> ResultStatus:
    """Return the status that the decisions add up to, where `required` acceptances verify a result.

    Two rejections withhold the rank, unless more reviewers accept. One alone proposes that: it does once it stands,
    since nobody gave a second opinion in time. Acceptances verify the result if they outnumber everything else.
    """
    counts = asdict(tally)
    counts["proof_rejected"] = holds(REJECTED, counts)
    if holds(rejected(), counts):
        return ResultStatus.REJECTED
    return ResultStatus.VERIFIED if holds(verified(required), counts) else ResultStatus.PROVISIONAL


def verdict(
    decisions: Iterable[tuple[Decision, str]], required: int | None, *, rejection_stands: bool = False
) -> Verdict:
    """Return the verdict on a proof, from each reviewer's decision with its reason; see `verdict_of`."""
    decided = list(decisions)
    counts = {COUNTED_IN[one]: sum(found == one for found, _ in decided) for one in COUNTED_IN}
    tally = Tally(**counts, rejection_stands=rejection_stands)
    return verdict_of(
        tally, required, [reason for decision, reason in decided if decision == Decision.REJECTED]
    )


def verdict_of(tally: Tally, required: int | None, rejections: Iterable[str] = ()) -> Verdict:
    """Return the verdict on a proof, from the counted decisions and the reasons of the rejections among them.

    `required` is None where no proof is needed.
    """
    if required is None:
        return Verdict(ResultStatus.SCORED)
    status = status_of(tally, required)
    is_open = status is ResultStatus.PROVISIONAL
    asks_changes = is_open and tally.change_requests > 0
    is_proposal = is_open and tally.is_proposal
    is_split = is_open and not asks_changes and not is_proposal and tally.rejections > 0
    if status is ResultStatus.REJECTED:
        # Reviewers who agree may have written the same.
        reason = "proof rejected: " + "; ".join(dict.fromkeys(reason.rstrip(" .") for reason in rejections))
    elif status is ResultStatus.VERIFIED:
        reason = f"proof accepted by {tally.acceptances} reviewers"
    elif asks_changes:
        reason = "changes to the proof requested"
    elif is_proposal:
        reason = "one reviewer proposes to reject the proof; a second opinion is due"
    elif is_split:
        reason = (
            f"reviewers disagree; {'a third' if tally.decisions == 2 else 'another'} reviewer will decide"
        )
    else:
        reason = f"proof accepted by {tally.acceptances} of {required} reviewers"
    return Verdict(status, reason, tally.acceptances, required, asks_changes, is_proposal, is_split)
