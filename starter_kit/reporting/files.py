"""The files of a run folder, read and replaced, with rejections instead of the system's errors."""

import os
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError


def read_file(path: Path) -> bytes:
    """What `path` holds. Raises `ProblemError` (`E_RUN_FOLDER`) where it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _rejection(path, "a file of a training run", error) from error


def replace_file(path: Path, content: str | bytes) -> None:
    """Write `path`, at once: a reader finds the file as it was or as it is to be.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) It can't be written.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise _rejection(path, "a folder to write into", error) from error


def _rejection(path: Path, expected: str, error: OSError) -> ProblemError:
    return ProblemError.of(ErrorCode.RUN_FOLDER, where=str(path), expected=expected, found=error.strerror)
