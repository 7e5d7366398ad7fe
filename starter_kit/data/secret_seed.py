"""Seeds that nobody can guess, in files: whoever has the seed of a data set can make its test set."""

import os
import re
import secrets
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError

BYTES = 32
# The first bit is set: as a number, no seed is short.
HIGHEST_BIT = 1 << (8 * BYTES - 1)


def secret_seed(path: Path) -> tuple[int, bool]:
    """Return the seed in a file, and whether it is new: it is drawn if there is no file yet.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file holds something else.
    """
    drawn = f"{secrets.randbits(8 * BYTES) | HIGHEST_BIT:x}"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(drawn + "\n")
    except FileExistsError:
        stored = path.read_text(encoding="utf-8", errors="replace").strip()
        if not re.fullmatch(rf"[89a-f][0-9a-f]{{{2 * BYTES - 1}}}", stored):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=f"--seed-file {path}",
                expected="a seed that an earlier command drew, or no such file",
                found="a file with other content",
                next_step="Name a new file: the command draws a seed and writes it there.",
            ) from None
        return int(stored, 16), False
    return int(drawn, 16), True
