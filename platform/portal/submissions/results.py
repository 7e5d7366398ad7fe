"""What a run's results say in words: ε by each rule, the trust level, the checks."""

from collections import Counter
from dataclasses import dataclass

from evaluator.accounting.accountant import Accountant
from evaluator.checks import CHECKS, CheckText
from evaluator.contracts import Check, CheckStatus, TrackRules, TrustLevel
from evaluator.mechanisms.mechanism import SamplingRule
from portal.submissions.models import Run

TRUST = {
    TrustLevel.RECOMPUTED: "Every number follows from the files. Whether they tell what happened, nobody has seen.",
    TrustLevel.CONFORMANT: "The trainer that was submitted passed the conformance tests.",
    TrustLevel.REPLAYED: "A round that the site drew was replayed with that trainer and came out the same.",
    TrustLevel.RERUN: "The organizers trained it again.",
}
WORST_FIRST = [CheckStatus.FAILED, CheckStatus.FLAGGED, CheckStatus.PASSED, CheckStatus.NOT_APPLICABLE]
RULE_NAMES = {SamplingRule.TWO_STAGE: "two-stage", SamplingRule.PRODUCT: "product"}

# What a check found may come from the annex or name the clients of a round. In a private track strangers read of it
# only what the published numbers say anyway; a check that isn't named here keeps its findings to team and organizers.
PUBLIC_FINDINGS = frozenset(
    {"C1", "C2", "C3", "C4", "C10", "C14", "C15", "C16", "C18", "C19", "C20"},
)


@dataclass(frozen=True)
class EpsilonRow:
    """ε by one sampling rule and accountant; `decides` where it is compared with the budget."""

    rule: str
    accountant: str
    epsilon: float | None
    decides: bool


@dataclass(frozen=True)
class ShownCheck:
    """A check with its words. `is_public` says whether strangers may read what it expected and found."""

    check: Check
    name: str
    meaning: str
    limit: str
    is_public: bool

    @property
    def status(self) -> str:
        return _words(self.check.status)


def epsilon_rows(run: Run) -> list[EpsilonRow]:
    """The recomputed ε, the one that decides first; none before the accounting."""
    privacy = TrackRules.model_validate(run.rules).privacy if run.epsilon is not None else None
    if privacy is None:
        return []
    decides = (privacy.sampling_rule, privacy.accountant)
    rows = [
        (SamplingRule.TWO_STAGE, Accountant.PLD, run.epsilon_two_stage),
        (SamplingRule.PRODUCT, Accountant.PLD, run.epsilon_product),
        (privacy.sampling_rule, Accountant.RDP, run.epsilon_rdp),
    ]
    shown = [
        EpsilonRow(RULE_NAMES[rule], accountant.upper(), epsilon, (rule, accountant) == decides)
        for rule, accountant, epsilon in rows
    ]
    return sorted(shown, key=lambda row: not row.decides)


def margin(run: Run) -> float | None:
    """What is left of the budget, below 0 where ε exceeds it; None before the accounting."""
    return None if run.budget is None or run.epsilon is None else run.budget - run.epsilon


def shown_checks(run: Run) -> list[ShownCheck]:
    """The run's checks with their words, in the order in which they were made."""
    return [_shown(Check.model_validate(check), is_private=run.budget is not None) for check in run.checks]


def tally(run: Run) -> str:
    """How many checks ended in each way, the worst first: "1 flagged, 9 passed"."""
    counts = Counter(check["status"] for check in run.checks)
    return ", ".join(f"{counts[status]} {_words(status)}" for status in WORST_FIRST if counts[status])


def flagged(run: Run) -> int:
    """How many checks the reviewers are asked to look at."""
    return sum(check["status"] == CheckStatus.FLAGGED for check in run.checks)


def _shown(check: Check, *, is_private: bool) -> ShownCheck:
    # A run may have been checked by an earlier evaluator, which knew other checks.
    text = CHECKS.get(check.id, CheckText(name="", meaning="", limit=""))
    return ShownCheck(
        check=check,
        name=text.name,
        meaning=text.meaning,
        limit=text.limit,
        is_public=not is_private or check.id in PUBLIC_FINDINGS,
    )


def _words(status: CheckStatus) -> str:
    return status.replace("_", " ")
