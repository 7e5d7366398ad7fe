"""Reports cut to what the database stores.

Their texts quote names from uploaded files: they are capped, and lose what can't be stored.
"""

from enum import Enum
from typing import Any

from evaluator.errors import shorten
from evaluator.messages.jobs import Outcome, ScoringDetail, ScoringResult, WorkerReport
from evaluator.messages.leakage import LeakageDetail, LeakageResult

# The most items of a list, by its name. Groups are those of `evaluator.scoring.groups`: keys of all questions and of
# both parts, with a few more. Changed tensors are as many as a checkpoint may have.
MOST = {"problems": 100, "checks": 100, "groups": 400, "measures": 200, "left_out": 200, "changed": 20_000}
MAX_TEXT_CHARACTERS = 500
SHORT_TEXTS = {"accountant", "group", "attack", "statistic", "left_out"}
MAX_SHORT_CHARACTERS = 200
MAX_TRACE_CHARACTERS = 20_000
# No other report has a detail.
WITH_DETAIL: set[tuple[type, type]] = {(ScoringResult, ScoringDetail), (LeakageResult, LeakageDetail)}


def truncate_for_storage(report: WorkerReport) -> WorkerReport:
    """Return the report with every list and text cut to what the database stores."""
    cut = _cut(report.model_dump(include={"problems", "result", "detail"}))
    if report.outcome is not Outcome.PASSED or (type(report.result), type(report.detail)) not in WITH_DETAIL:
        cut["detail"] = None
    trace = report.operator_trace[-MAX_TRACE_CHARACTERS:].replace("\0", "�")
    return WorkerReport.model_validate({**dict(report), **cut, "operator_trace": trace})


def _cut(value: Any, name: str = "") -> Any:
    """Return the value of the field `name` with its texts and lists cut."""
    match value:
        case Enum():
            return value
        case str():
            return shorten(value, MAX_SHORT_CHARACTERS if name in SHORT_TEXTS else MAX_TEXT_CHARACTERS)
        case list():
            return [_cut(item, name) for item in value[: MOST.get(name)]]
        case dict():
            return {key: _cut(item, key) for key, item in value.items()}
        case _:
            return value
