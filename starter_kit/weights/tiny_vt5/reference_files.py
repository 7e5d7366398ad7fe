"""The shipped files of the tiny VT5: configs, tokenizer and weights."""

import hashlib
import shutil
from pathlib import Path

FOLDER = Path(__file__).with_name("reference")


def copy_to(folder: Path) -> None:
    """Write the reference folder `folder`; it appears whole or not at all."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(FOLDER, unfinished)
    unfinished.rename(folder)


def digests() -> dict[str, str]:
    """SHA-256 of each shipped file, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FOLDER.iterdir())}
