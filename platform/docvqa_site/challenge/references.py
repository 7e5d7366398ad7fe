"""The base weights that the site has, by which participants and arriving files are compared with a track's."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from django.conf import settings
from django.core.cache import cache

from evaluator.checkpoints.header import read_header, untied
from evaluator.messages.file_hash import sha256_of

WEIGHTS = "model.safetensors"


def reference_file(name: str) -> Path | None:
    """Return the file of these base weights; None on a site that doesn't have them."""
    path: Path = settings.REFERENCES_FOLDER / name / WEIGHTS
    return path if path.is_file() else None


def reference_sha256(name: str) -> str:
    """Return the SHA-256 of the file of these base weights; empty on a site that doesn't have them."""
    path = reference_file(name)
    if path is None:
        return ""
    status = path.stat()
    # Hashing a gigabyte takes a second: once for each version of the file.
    version = f"reference.{name}.{status.st_size}.{status.st_mtime_ns}"
    return str(cache.get_or_set(version, lambda: sha256_of(path), timeout=None))


def tensors_matching(name: str, patterns: Sequence[str]) -> dict[str, int] | None:
    """Return how many tensors of these base weights each pattern matches; None on a site that doesn't have them."""
    path = reference_file(name)
    if path is None:
        return None
    tensors = untied(read_header(path))
    return {pattern: sum(fnmatchcase(tensor, pattern) for tensor in tensors) for pattern in patterns}
