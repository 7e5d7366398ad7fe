"""A full disk, whichever library meets it."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError

FULL = {errno.ENOSPC, errno.EDQUOT}
# How safetensors, shutil and torch quote the system.
QUOTED = ("No space left on device", "Disk quota exceeded")


def full_disk(where: object) -> ProblemError:
    """Return the error (`E_DISK_FULL`) of what has no room there."""
    return ProblemError.of(ErrorCode.DISK_FULL, str(where), "room for what is written", "none")


@contextmanager
def room_for(target: Path) -> Iterator[None]:
    """Inside the block, report a full disk by the name of what is written. Raises `ProblemError` (`E_DISK_FULL`)."""
    try:
        yield
    except Exception as error:
        if is_full(error):
            raise full_disk(target) from error
        raise


def is_full(error: BaseException) -> bool:
    """Return whether an error says that there is no room left."""
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return any(words in str(error) for words in QUOTED)
