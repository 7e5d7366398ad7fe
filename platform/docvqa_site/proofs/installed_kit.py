"""The source files of the starter kit that is installed with this site, found without importing any of it."""

import hashlib
import importlib.util
import re
from functools import cache
from pathlib import Path

# What a proof may name as a file: folders and a name, which all begin with a letter, a digit or an underscore.
PATH = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*", re.A)
PACKAGES = ("starter_kit", "evaluator")


def installed_file(path: str) -> Path | None:
    """Return where a source file of the kit is, by its path in the repository; None if it isn't one, or isn't here."""
    package, _, rest = path.partition("/")
    root = _root(package) if package in PACKAGES and path.endswith(".py") and PATH.fullmatch(path) else None
    file = root / rest if root else None
    return file if file and file.is_file() else None


@cache
def file_digest(file: Path) -> str:
    """Return the SHA-256 of an installed file, which doesn't change while the site runs."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def _root(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent if found and found.origin else None
