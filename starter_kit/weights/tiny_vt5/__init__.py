"""The tiny VT5 for trials, which ships with the kit: configs, tokenizer and weights, and the note of their origin."""

import hashlib
import shutil
from pathlib import Path

from evaluator.errors import ProblemError
from starter_kit.disk import room_for

FOLDER = Path(__file__).with_name("reference")
# How the files were made; written by `make base-weights`.
ORIGIN = Path(__file__).with_name("origin.json")


def copy_to(folder: Path) -> None:
    """Write the reference folder `folder`; it appears whole or not at all."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        with room_for(folder):
            shutil.copytree(FOLDER, unfinished)
            unfinished.rename(folder)
    except (OSError, ProblemError):
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def digests() -> dict[str, str]:
    """SHA-256 of each shipped file, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FOLDER.iterdir())}
