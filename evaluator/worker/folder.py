"""A worker's own folder: where base weights, test sets and fetched artifacts are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import STEP_ARTIFACTS, EvaluationJob, LeakageSet, Step
from evaluator.worker.artifacts import fetch
from evaluator.worker.step_process import StepRequest


class WorkerFolder:
    """The worker's folder: what organizers put there (`references/`, `test_sets/`), and its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def step_request(self, job: EvaluationJob, on_progress: Callable[[int, int], None]) -> StepRequest:
        """Fetch what the job's step needs, and return where it is."""
        files = {}
        for kind in STEP_ARTIFACTS[job.step]:
            ref = job.artifact(kind)
            if ref is None:
                raise ProblemError.of(ErrorCode.ARTIFACT_MISSING, where=kind)
            files[kind] = fetch(ref, self.folder / "cache", on_progress=on_progress)
        request = StepRequest(
            step=job.step,
            rules=job.rules,
            files=files,
            reference=self._existing("references", job.rules.reference),
            challenge=job.challenge,
            sample_key=job.sample_key,
        )
        return request.model_copy(update=self._secret_data(job))

    def _secret_data(self, job: EvaluationJob) -> dict[str, Any]:
        """Return what a step that runs the model is given besides."""
        answers = self.folder / "answers"
        match job.step, job.rules.leakage_set:
            case Step.SCORING, _:
                return {
                    "test_set": self._existing("test_sets", job.rules.test_set),
                    "kept": self.folder / "scoring",
                    "answers": answers / f"{job.evaluation}.jsonl",
                }
            case Step.LEAKAGE, LeakageSet(folder=folder, split=split):
                return {
                    "test_set": self._existing("test_sets", folder),
                    "split": split,
                    "kept": self.folder / "leakage",
                    "answers": answers / f"{job.evaluation}.leakage.json",
                }
            case _:
                return {}

    def _existing(self, kind: str, name: str) -> Path:
        folder = self.folder / kind / name
        if not folder.is_dir():
            raise FileNotFoundError(f"this worker has no {kind}/{name} under PFL_EVALUATOR_HOME")
        return folder
