"""Every check on a training record that the files at hand allow, explained."""

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.checks import CHECKS
from evaluator.contracts import ArtifactKind, Check
from evaluator.errors import ProblemError
from evaluator.pipeline import StepInputs, count_communication
from evaluator.progress import ignore_progress
from evaluator.records.check_groups import GROUPS, Case, CheckGroup, RunFile
from evaluator.records.epsilon import account


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
            "can't detect": text.limit,
        }
        status = self.check.status.replace("_", " ") if self.check else "not made"
        return "\n".join(
            [f"{self.id} {text.name}: {status}", *(f"  {name}: {row}" for name, row in rows.items() if row)]
        )


def explain_checks(case: Case) -> Iterator[ExplainedCheck]:
    """Yield every check of the table `CHECKS`, in its order."""
    found: dict[str, ExplainedCheck] = {}
    for group in [_BUDGET, *GROUPS, _PLAUSIBILITY]:
        found |= {explained.id: explained for explained in _explain(group, case)}
    for name in CHECKS:
        yield found.get(name, ExplainedCheck(name, None, "the site makes it, over all runs of a team"))


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


def _budget(case: Case) -> list[Check]:
    return account(case.record, case.privacy, []).checks


def _plausibility(case: Case) -> list[Check]:
    files = {
        ArtifactKind.CHECKPOINT: case.files[RunFile.CHECKPOINT],
        ArtifactKind.COMMUNICATION_LOG: case.files[RunFile.LOG],
    }
    inputs = StepInputs(files, case.rules, reference=case.files[RunFile.BASE].parent)
    return count_communication(inputs, ignore_progress).result.checks


_BUDGET = CheckGroup(("C1",), (), _budget)
_PLAUSIBILITY = CheckGroup(
    ("P1", "P2", "P3", "P4"), (RunFile.BASE, RunFile.CHECKPOINT, RunFile.LOG), _plausibility
)
