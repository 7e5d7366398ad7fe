"""Runs the steps of jobs: fetches what they need, and runs each in the sandbox with limits of its own."""

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaluator.messages.jobs import MODEL_STEPS, EvaluationJob, Step
from evaluator.messages.progress import OnProgress
from evaluator.pipeline import StepInputs, with_decoded
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Sandbox, SandboxError
from evaluator.worker.artifacts import FetchError
from evaluator.worker.folder import step_inputs
from evaluator.worker.home import evaluator_home
from evaluator.worker.step_process import StepEnding, StepRequest

logger = logging.getLogger(__name__)

GIB = 1024 * MIB
HOUR_S = 3600
# The model uses GPUs, whose driver reserves address space without end, and has a process for each.
SCORING_LIMITS = Limits(
    wall_s=float(os.environ.get("PFL_SCORING_SECONDS") or 6 * HOUR_S),
    cpu_s=1000 * HOUR_S,
    memory_bytes=int(float(os.environ.get("PFL_SCORING_MEMORY_GB") or 64) * 1e9),
    processes=4096,
    open_files=65_536,
)
STEP_LIMITS = Limits(
    wall_s=float(os.environ.get("PFL_STEP_SECONDS") or HOUR_S),
    cpu_s=2 * HOUR_S,
    memory_bytes=8 * GIB,
    address_space_bytes=64 * GIB,
)
# What a step imports when it begins, loaded once instead.
PRELOADED = {
    Step.ACCOUNTING: [
        "evaluator.records.epsilon",
        "evaluator.records.check_table",
        "scipy.special",
        "scipy.stats",
        "evaluator.records.reading",
    ],
    Step.SCORING: ["evaluator.scoring.predictions", "evaluator.scoring.groups"],
    Step.LEAKAGE: ["evaluator.leakage.models", "evaluator.leakage.published"],
}


class StepRunner:
    """Runs steps in the worker's folder, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.sandbox = Sandbox()

    def run(self, job: EvaluationJob, on_progress: OnProgress) -> StepEnding:
        """Run the step of a job, and return how it ended, whatever happens."""
        try:
            inputs = step_inputs(self.folder, job, on_progress)
            with tempfile.TemporaryDirectory(prefix="decoded-") as decoded:
                if job.step is Step.COMMUNICATION:
                    inputs = with_decoded(inputs, self.sandbox, Path(decoded))
                return self._run_sandboxed(job.step, inputs, on_progress)
        except FetchError as error:
            return StepEnding.of_error(error, job.step, error.code)
        except Exception as error:  # noqa: BLE001 - the boundary: whatever went wrong is reported, never lost
            return StepEnding.of_error(error, job.step)

    def _run_sandboxed(self, step: Step, inputs: StepInputs, on_progress: OnProgress) -> StepEnding:
        kept = [path for path in (inputs.kept, inputs.answers and inputs.answers.parent) if path]
        for path in kept:
            path.mkdir(parents=True, exist_ok=True)
        folders = [path for path in (inputs.test_set, inputs.decoded.folder) if path]
        try:
            ending = self.sandbox.run(
                "evaluator.worker.step_process",
                "run",
                StepRequest(step=step, inputs=inputs).model_dump(mode="json"),
                preload=PRELOADED.get(step, ()),
                readable=[*inputs.files.values(), inputs.reference, *folders],
                writable=kept,
                limits=SCORING_LIMITS if step in MODEL_STEPS else STEP_LIMITS,
                gpus=step in MODEL_STEPS,
                on_message=lambda message: on_progress(*_progress(message)),
            )
            return StepEnding.model_validate(ending)
        except SandboxError as error:
            # What the process wrote may quote secret data, and its error names no place in our code.
            output = "" if step in MODEL_STEPS else f"\n{error.output}"
            raise RuntimeError(f"{error}{output}") from None
        except ValidationError as error:
            fields = [detail["loc"] for detail in error.errors(include_input=False)]
            raise RuntimeError(f"the step's process returned no ending of a step: {fields}") from None


def _progress(message: Any) -> tuple[int, int]:
    match message:
        case [int(done), int(total)]:
            return done, total
        case _:
            raise RuntimeError("the step's process sent what isn't progress")


def default_runner() -> StepRunner:
    """Return a runner in the worker's own folder."""
    return StepRunner(evaluator_home())
