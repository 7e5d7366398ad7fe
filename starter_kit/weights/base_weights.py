"""The base weights as a participant names them: a folder that holds `model.safetensors`."""

from pathlib import Path

from evaluator.checkpoints.header import Header, read_header
from evaluator.errors import ErrorCode, ProblemError
from evaluator.pipeline import WEIGHTS


def read_base(folder: Path) -> Header:
    """Return the header of a folder's base weights.

    Raises:
        ProblemError: ``E_ARTIFACT_MISSING`` where there are none, ``E_REFERENCE_FORMAT`` where they can't be read.
    """
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            where=str(weights),
            expected="the base weights",
            next_step="Name the folder of the track's base weights.",
        )
    try:
        return read_header(weights)
    except ProblemError as error:
        raise ProblemError.of(
            ErrorCode.REFERENCE_FORMAT,
            message="The base weights can't be read.",
            where=str(weights),
            expected="a whole safetensors file",
            found=error.problem.found,
        ) from error
