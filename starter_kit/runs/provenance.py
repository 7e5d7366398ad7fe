"""Which trainer made a run: one hash over the starter kit's sources and the run's settings.

The settings name the file of a participant's own method by its SHA-256, so the hash covers that file as well.
"""

import hashlib
from pathlib import Path

from evaluator.checkpoints.contents import sha256_of

SOURCES = Path(__file__).parents[1]


def code_sha256(settings: str) -> str:
    """SHA-256 of a list as `sha256sum` prints it: the kit's Python files, sorted by path, then settings.yaml.

    Args:
        settings: The content of settings.yaml.
    """
    files = sorted(SOURCES.rglob("*.py"), key=lambda path: path.relative_to(SOURCES).as_posix())
    listed = [(sha256_of(path), f"{SOURCES.name}/{path.relative_to(SOURCES).as_posix()}") for path in files]
    listed.append((hashlib.sha256(settings.encode()).hexdigest(), "settings.yaml"))
    text = "".join(f"{sha256}  {name}\n" for sha256, name in listed)
    return hashlib.sha256(text.encode()).hexdigest()
