"""The sandboxed side of a step: it has the files and the rules, and neither the broker nor a network.

`run` is what `evaluator.sandbox` calls, with a `StepRequest`; what it returns is a `StepEnding`. Both travel as JSON.
"""

import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.errors.traces import trace_of
from evaluator.messages.base import Message
from evaluator.messages.jobs import (
    MODEL_STEPS,
    DrawnMeans,
    Outcome,
    Step,
    StepDetail,
    StepResult,
    WeightSample,
)
from evaluator.pipeline import StepInputs, run_step

# Progress is sent no more often.
PROGRESS_S = 0.2
# A problem with the worker's own folders is the organizers' to fix, and would reveal something of the test set.
OPERATOR_ERRORS = {
    ErrorCode.DATASET_FORMAT,
    ErrorCode.DATASET_FOLDER,
    ErrorCode.LEAKAGE_LABELS,
    ErrorCode.LEAKAGE_PROVIDERS,
    ErrorCode.REFERENCE_FORMAT,
    ErrorCode.REFERENCE_ARCHITECTURE,
}


class StepRequest(Message):
    """A step and what it works with."""

    step: Step
    inputs: StepInputs


class StepEnding(Message):
    """How a step ended, as its report says it."""

    outcome: Outcome
    result: StepResult | None = None
    detail: StepDetail | None = None
    sample: WeightSample | None = None
    drawn_means: list[DrawnMeans] = []
    problems: list[Problem] = []
    operator_trace: str = ""
    hardware: str = ""

    @classmethod
    def of_error(
        cls, error: Exception, step: Step, code: ErrorCode = ErrorCode.PLATFORM_FAULT
    ) -> "StepEnding":
        """Return how a step that raised ended: rejected for the participant to fix, or failed with `code`."""
        if isinstance(error, ProblemError) and not OPERATOR_ERRORS & {
            problem.code for problem in error.problems
        }:
            return cls(outcome=Outcome.REJECTED, problems=error.problems)
        return cls(
            outcome=Outcome.FAILED,
            problems=[Problem.of(code)],
            operator_trace=trace_of(error, quoted=step not in MODEL_STEPS),
        )


def run(inputs: Any, send: Callable[[object], None]) -> Any:
    """Run one step, and return how it ended; sends its progress as pairs of done and total."""
    request = StepRequest.model_validate(inputs)
    return _ending(request, _Reporter(send)).model_dump(mode="json")


def _ending(request: StepRequest, on_progress: "_Reporter") -> StepEnding:
    try:
        output = run_step(request.step, request.inputs, on_progress)
    except MemoryError:
        # The sandbox reports it.
        raise
    except Exception as error:  # noqa: BLE001 - the boundary: whatever went wrong is reported, never lost
        return StepEnding.of_error(error, request.step)
    return StepEnding(
        outcome=Outcome.PASSED,
        result=output.result,
        detail=output.detail,
        sample=output.sample,
        drawn_means=list(output.drawn_means),
        hardware=_hardware(request.step),
    )


class _Reporter:
    """Sends progress, not more often than anybody looks; the last is always sent."""

    def __init__(self, send: Callable[[object], None]) -> None:
        self._send = send
        self._last_s = 0.0

    def __call__(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        if done == total or now_s - self._last_s > PROGRESS_S:
            self._last_s = now_s
            self._send([done, total])


def _hardware(step: Step) -> str:
    torch = sys.modules.get("torch")
    if step in MODEL_STEPS and torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.machine()}, {os.cpu_count()} cores"
