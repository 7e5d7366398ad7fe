"""Every check on a training record that the files at hand allow, explained."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaluator.errors import ProblemError
from evaluator.messages.jobs import AccountingResult, ArtifactKind, Check, CheckStatus
from evaluator.pipeline import StepInputs, count_communication
from evaluator.progress import ignore_progress
from evaluator.records.check_groups import GROUPS, Case, CheckGroup, RunFile
from evaluator.records.check_texts import CHECKS
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
        text = CHECKS[self.id]
        rows = {
            "means": text.meaning,
            "expected": self.check.expected if self.check else "",
            "found": self.check.found if self.check else "",
            "where": self.check.where if self.check else "",
            "why not": self.reason,
            "not covered": text.limit,
        }
        return "\n".join(
            [
                f"{self.id} {text.name}: {self.status}",
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
        """ε, and check C1 on it. Raises ProblemError where there is none, or the record claims less."""
        return account(self.record, self.privacy, [])


def explain_checks(case: AccountedCase) -> Iterator[ExplainedCheck]:
    """Yield every check of the table `CHECKS`, in its order."""
    budget = CheckGroup(("C1",), (), lambda _: case.accounting.checks)
    found: dict[str, ExplainedCheck] = {}
    for group in [budget, *GROUPS, _PLAUSIBILITY]:
        found |= {explained.id: explained for explained in _explain(group, case)}
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


def _explain(group: CheckGroup, case: Case) -> Iterator[ExplainedCheck]:
    made: dict[str, Check] = {}
    missing = [f"--{name}" for name in group.needs if name not in case.files]
    reason = f"it requires {' and '.join(missing)}" if missing else "the files are of different runs"
    if not missing:
        try:
            made = {check.id: check for check in group.make(case)}
        except ProblemError as error:
            reason = "\n".join(map(str, error.problems))
    for name in group.ids:
        yield ExplainedCheck(name, made[name]) if name in made else ExplainedCheck(name, None, reason)


def _plausibility(case: Case) -> list[Check]:
    files = {
        ArtifactKind.CHECKPOINT: case.files[RunFile.CHECKPOINT],
        ArtifactKind.COMMUNICATION_LOG: case.files[RunFile.LOG],
    }
    inputs = StepInputs(files, case.rules, reference=case.files[RunFile.BASE].parent)
    return count_communication(inputs, ignore_progress).result.checks


_PLAUSIBILITY = CheckGroup(
    ("P1", "P2", "P3", "P4"), (RunFile.BASE, RunFile.CHECKPOINT, RunFile.LOG), _plausibility
)
