"""Every check on a training record that the files at hand allow, explained."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from evaluator.communication.plausibility import LOG_CHECKS
from evaluator.errors import ProblemError
from evaluator.messages.jobs import AccountingResult, ArtifactKind, Check, CheckStatus
from evaluator.messages.progress import ignore_progress
from evaluator.pipeline import StepInputs, count_communication
from evaluator.records.case import Case, RecordCheck, RunFile
from evaluator.records.check_table import BUDGET, CHECKS, RECORD_CHECKS
from evaluator.records.epsilon import account
from starter_kit.reporting.rounding import rounded_up

NOT_MADE = "not made"
TRUST_LINE = (
    "Trust level L0: every number follows from the files. Nothing here shows that this training took place, or that "
    "its updates were clipped."
)
# The statuses that need reading, the worst first.
WORST_FIRST = [
    *(status.replace("_", " ") for status in (CheckStatus.FAILED, CheckStatus.FLAGGED, CheckStatus.NO_POWER)),
    NOT_MADE,
]


@dataclass(frozen=True)
class ExplainedCheck:
    """A check by its id: the result, or the reason why there is none.

    Attributes:
        check: None where the check was not made.
        reason: Why it was not made.
    """

    id: str
    check: Check | None
    reason: str = ""

    def __str__(self) -> str:
        named = CHECKS[self.id]
        rows = {
            "means": named.meaning,
            "expected": self.check.expected if self.check else "",
            "found": self.check.found if self.check else "",
            "where": self.check.where if self.check else "",
            "why not": self.reason,
            "not covered": named.limit,
        }
        return "\n".join(
            [
                f"{self.id}, {named.name}: {self.status}",
                *(f"  {name}: {row}" for name, row in rows.items() if row),
            ]
        )

    @property
    def status(self) -> str:
        """How the check ended, in words."""
        return self.check.status.replace("_", " ") if self.check else NOT_MADE

    @property
    def needs_reading(self) -> bool:
        """Whether the check shows a problem, or can't show that there is none."""
        return self.status in WORST_FIRST


@dataclass(frozen=True)
class AccountedCase(Case):
    """A case whose ε is recomputed once, however often it is asked for."""

    @cached_property
    def accounting(self) -> AccountingResult:
        """ε, and the check of the budget. Raises ProblemError where there is none, or the record claims less."""
        return account(self.record, self.privacy, [])


def explain_checks(case: AccountedCase) -> Iterator[ExplainedCheck]:
    """Yield every check of the table `CHECKS`, in its order."""
    found = dict(_made([BUDGET.id], (), lambda: case.accounting.checks, case))
    for one in RECORD_CHECKS:
        found |= _made([one.check.id], one.needs, partial(_one, one, case), case)
    log = (RunFile.BASE, RunFile.CHECKPOINT, RunFile.LOG)
    found |= _made([check.id for check in LOG_CHECKS], log, lambda: _plausibility(case), case)
    for name in CHECKS:
        yield found.get(name, ExplainedCheck(name, None, "the site makes it, over all runs of a team"))


def verdict(case: AccountedCase, explained: Sequence[ExplainedCheck]) -> str:
    """Return what the checks come to, in three lines: ε, how the checks ended, and what that proves."""
    return "\n".join([_epsilon_line(case), _tally(explained), TRUST_LINE])


def _epsilon_line(case: AccountedCase) -> str:
    claim = f"The record claims ε = {case.record.claimed_epsilon:g} for one provider"
    try:
        found = case.accounting
    except ProblemError as error:
        return f"{claim}; {error.problem.code}: it can't be confirmed."
    return f"{claim}; recomputed, ε = {rounded_up(found.epsilon, 4)} at δ = {found.delta:g}, by {found.accountant}."


def _tally(explained: Sequence[ExplainedCheck]) -> str:
    counts = Counter(check.status for check in explained)
    names = {status: [check.id for check in explained if check.status == status] for status in WORST_FIRST}
    parts = [f"{len(ids)} {status} ({', '.join(ids)})" for status, ids in names.items() if ids]
    return f"Checks: {'; '.join([f'{counts[CheckStatus.PASSED]} passed', *parts])}."


def _one(check: RecordCheck, case: Case) -> list[Check]:
    return [check.make(case)]


def _made(
    ids: Sequence[str], needs: Sequence[RunFile], make: Callable[[], Sequence[Check]], case: Case
) -> dict[str, ExplainedCheck]:
    """Return the checks with these ids, or why each of them can't be made."""
    if missing := [f"--{name}" for name in needs if name not in case.files]:
        reason = f"it requires {' and '.join(missing)}"
    else:
        try:
            return {check.id: ExplainedCheck(check.id, check) for check in make()}
        except ProblemError as error:
            reason = "\n".join(map(str, error.problems))
    return {name: ExplainedCheck(name, None, reason) for name in ids}


def _plausibility(case: Case) -> list[Check]:
    files = {
        ArtifactKind.CHECKPOINT: case.files[RunFile.CHECKPOINT],
        ArtifactKind.COMMUNICATION_LOG: case.files[RunFile.LOG],
    }
    inputs = StepInputs(files, case.rules, reference=case.files[RunFile.BASE].parent)
    return count_communication(inputs, ignore_progress).result.checks
