"""The SHA-256 by which messages name files."""

import hashlib
from pathlib import Path


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
