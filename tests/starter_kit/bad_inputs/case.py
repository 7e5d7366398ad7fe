"""One bad input: a good one that is spoiled in one place, and what `pfl` must answer."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Spoil = Callable[[Path], object]


@dataclass(frozen=True)
class Bad:
    """A bad input.

    Attributes:
        name: What is wrong, as a clause.
        command: The words after `pfl`, with single spaces between. A word that begins with the name of a good input
            means a copy of it, in the current folder.
        code: The code of the first problem.
        where: Part of the place that the first problem names.
        spoil: Makes the input bad; called with the folder of the copies.
    """

    name: str
    command: str
    code: str
    where: str
    spoil: Spoil = lambda folder: None


def written(name: str, content: str | bytes) -> Spoil:
    """Write a file, in the place of one that may be there."""

    def spoil(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return spoil


def removed(name: str) -> Spoil:
    """Remove a file or a folder."""

    def spoil(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return spoil


def made(name: str) -> Spoil:
    """Make an empty folder."""
    return lambda folder: (folder / name).mkdir(parents=True)


def cut(name: str, size_bytes: int) -> Spoil:
    """Cut a file short; a negative size counts from its end."""

    def spoil(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:size_bytes])

    return spoil


def replaced(name: str, old: str, new: str) -> Spoil:
    """Replace the first occurrence of a text in a file."""

    def spoil(folder: Path) -> None:
        path = folder / name
        text = path.read_text()
        assert old in text, f"{name} has no {old}"
        path.write_text(text.replace(old, new, 1))

    return spoil


def json_changed(name: str, change: Callable[[Any], object]) -> Spoil:
    """Change what a JSON file says; `change` returns the new content, or None after changing the old one."""

    def spoil(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text())
        changed = change(content)
        path.write_text(json.dumps(content if changed is None else changed))

    return spoil


def line_changed(name: str, number: int, change: Callable[[str], str]) -> Spoil:
    """Change one line of a file, counted from 0, negative from the end; it loses its line end before."""

    def spoil(folder: Path) -> None:
        path = folder / name
        lines = path.read_text().split("\n")[:-1]
        lines[number] = change(lines[number])
        path.write_text("\n".join(lines) + "\n")

    return spoil


def all_of(*spoils: Spoil) -> Spoil:
    """Spoil one after another."""

    def spoil(folder: Path) -> None:
        for one in spoils:
            one(folder)

    return spoil
