"""Reports cut to what the database stores.

The texts of problems and checks quote names from uploaded files: they are capped, and lose what can't be stored.
"""

from typing import Any, TypeVar

from evaluator.errors import Problem, shorten
from evaluator.messages.jobs import (
    AccountingResult,
    Check,
    CommunicationResult,
    Outcome,
    ScoringDetail,
    ScoringResult,
    StepDetail,
    ValidationResult,
    WorkerReport,
)
from evaluator.messages.leakage import LeakageDetail, LeakageResult

MAX_PROBLEMS = 100
MAX_CHECKS = 100
# Those of `evaluator.scoring.groups`: keys of all questions and of both parts, with a few more.
MAX_GROUPS = 400
MAX_MEASURES = 200
# As many as a checkpoint may have.
MAX_TENSORS = 20_000
MAX_TEXT_CHARACTERS = 500
MAX_ACCOUNTANT_CHARACTERS = 200
MAX_TRACE_CHARACTERS = 20_000

Texts = TypeVar("Texts", Problem, Check)


def truncate_for_storage(report: WorkerReport) -> WorkerReport:
    """Return the report with every list and text cut to what the database stores."""
    changes: dict[str, Any] = {
        "problems": [_shortened(problem, "code") for problem in report.problems[:MAX_PROBLEMS]],
        "operator_trace": report.operator_trace[-MAX_TRACE_CHARACTERS:].replace("\0", "�"),
        "detail": _truncated_detail(report),
    }
    if isinstance(report.result, CommunicationResult | AccountingResult):
        checks = [_shortened(check, "id", "status") for check in report.result.checks[:MAX_CHECKS]]
        changes["result"] = report.result.model_copy(update={"checks": checks})
    if isinstance(report.result, AccountingResult):
        accountant = shorten(report.result.accountant, MAX_ACCOUNTANT_CHARACTERS)
        changes["result"] = changes["result"].model_copy(update={"accountant": accountant})
    if isinstance(report.result, ValidationResult):
        changed = [shorten(name, MAX_TEXT_CHARACTERS) for name in report.result.changed[:MAX_TENSORS]]
        changes["result"] = report.result.model_copy(update={"changed": changed})
    return report.model_copy(update=changes)


def _truncated_detail(report: WorkerReport) -> StepDetail | None:
    """Return the detail of a score or of a leakage, cut; no other report has any."""
    if report.outcome is not Outcome.PASSED:
        return None
    match report.result, report.detail:
        case ScoringResult(), ScoringDetail() as detail:
            groups = [
                group.model_copy(update={"group": shorten(group.group)})
                for group in detail.groups[:MAX_GROUPS]
            ]
            return detail.model_copy(update={"groups": groups})
        case LeakageResult(), LeakageDetail() as detail:
            return LeakageDetail(
                measures=[
                    measure.model_copy(
                        update={"attack": shorten(measure.attack), "statistic": shorten(measure.statistic)}
                    )
                    for measure in detail.measures[:MAX_MEASURES]
                ],
                left_out=[shorten(text) for text in detail.left_out[:MAX_MEASURES]],
            )
        case _:
            return None


def _shortened(message: Texts, *exact: str) -> Texts:
    """Return `message` with every text shortened except those named in `exact`."""
    texts = message.model_dump(exclude=set(exact))
    return message.model_copy(
        update={name: shorten(text, MAX_TEXT_CHARACTERS) for name, text in texts.items()}
    )
