"""A worker's own folder: where base weights, test sets and fetched artifacts are."""

import re
from pathlib import Path
from typing import Any

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import (
    FOLDER_NAME,
    OPTIONAL_ARTIFACTS,
    STEP_ARTIFACTS,
    EvaluationJob,
    LeakageSet,
    Step,
)
from evaluator.messages.progress import OnProgress
from evaluator.pipeline import StepInputs, untrained_files
from evaluator.worker.artifacts import fetch

# What organizers put into the folder.
REFERENCES, TEST_SETS = "references", "test_sets"


def step_inputs(folder: Path, job: EvaluationJob, on_progress: OnProgress) -> StepInputs:
    """Fetch what the job's step needs, and return where it is.

    Args:
        folder: The worker's own: what organizers put there (`references/`, `test_sets/`), and what it keeps.
    """
    reference = _existing(folder, REFERENCES, job.rules.reference)
    own = untrained_files(folder, reference) if job.is_rehearsal else {}
    files = {}
    for kind in STEP_ARTIFACTS[job.step]:
        ref = job.artifact(kind)
        if kind in own:
            files[kind] = own[kind]
        elif ref is not None:
            files[kind] = fetch(ref, folder / "cache", on_progress=on_progress)
        elif kind not in OPTIONAL_ARTIFACTS:
            raise ProblemError.of(ErrorCode.ARTIFACT_MISSING, where=kind)
    return StepInputs(
        files=files,
        rules=job.rules,
        reference=reference,
        challenge=job.challenge,
        sample_key=job.sample_key,
        **_secret_data(folder, job),
    )


def is_folder_name(name: str) -> bool:
    """Return whether a track can name the folder."""
    return re.fullmatch(FOLDER_NAME, name) is not None


def _secret_data(folder: Path, job: EvaluationJob) -> dict[str, Any]:
    """Return what a step that runs the model is given besides."""
    answers = folder / "answers"
    match job.step, job.rules.leakage_set:
        case Step.SCORING, _:
            return {
                "test_set": _existing(folder, TEST_SETS, job.rules.test_set),
                "kept": folder / "scoring",
                "answers": answers / f"{job.evaluation}.jsonl",
            }
        case Step.LEAKAGE, LeakageSet(folder=name, split=split):
            return {
                "test_set": _existing(folder, TEST_SETS, name),
                "split": split,
                "kept": folder / "leakage",
                "answers": answers / f"{job.evaluation}.leakage.json",
            }
        case _:
            return {}


def _existing(folder: Path, kind: str, name: str) -> Path:
    if not (folder / kind / name).is_dir():
        raise FileNotFoundError(f"this worker has no {kind}/{name} under PFL_EVALUATOR_HOME")
    return folder / kind / name
