"""Reading and replacing the files of a run folder, with coded problems instead of the system's errors."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError


def read_file(path: Path) -> bytes:
    """Return the content of `path`. Raises `ProblemError` (`E_RUN_FOLDER`) if it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _rejection(path, "a file of a training run", error) from error


def replace_file(path: Path, content: str | bytes) -> None:
    """Write `path` atomically: a reader finds the old or the new content, and nothing in between.

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


def write_new_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write texts into `folder`, by the names of their files, and return their paths; nothing is overwritten.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) One of the files exists already, and none was written, or one can't be written.
    """
    paths = {folder / name: text for name, text in files.items()}
    for path in paths:
        if path.exists():
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="A file of that name already exists, and nothing is overwritten.",
                where=str(path),
                expected="no such file",
                found="one",
                next_step="Choose another folder, or move the file away.",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            str(folder),
            "a folder to write into",
            error.strerror,
            message="The new files can't be written.",
            next_step="Name a folder that you can write into.",
        ) from error
    return list(paths)


def _rejection(path: Path, expected: str, error: OSError) -> ProblemError:
    return ProblemError.of(
        ErrorCode.RUN_FOLDER,
        message="A file of the run can't be read or written.",
        where=str(path),
        expected=expected,
        found=error.strerror,
    )


@contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of a new file, which becomes `path` when the block has written it, and survives a power cut.

    What an error or a crash cuts off never has the name `path`.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=mode)
    yield new
    fsync_path(new)
    new.replace(path)
    fsync_path(path.parent)


def fsync_path(path: Path) -> None:
    """Make what was written to a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
