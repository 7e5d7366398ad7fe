"""The code that a count is of: its hash, so that a count by other code is known as such.

Comments, docstrings and the layout of lines don't count: what Python executes does.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from starter_kit.settings.configuration import load_settings

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
HASH_CHARACTERS = 16
METHODS = "starter_kit.methods."


def code_hash(patterns: Iterable[str], more: str = "") -> str:
    """Return a hash of the Python files that match, and of `more`, as hexadecimal digits.

    Args:
        patterns: Globs, relative to the folder that has `starter_kit` and `evaluator`.

    Raises:
        ValueError: No file matches one of them.
    """
    digest = hashlib.sha256(more.encode())
    for pattern in sorted(patterns):
        files = sorted(ROOT.glob(pattern))
        if not files:
            raise ValueError(f"no file matches {pattern}")
        for file in files:
            digest.update(f"\n{file.relative_to(ROOT).as_posix()}\n{_executed(file)}".encode())
    return digest.hexdigest()[:HASH_CHARACTERS]


def method_files(config: str, changes: Sequence[str] = ()) -> list[str]:
    """Return the kit's files that define the method of a config, for `code_hash`."""
    known = [kind.__module__ for kind in type(load_settings(config, changes)).__mro__]
    return sorted({f"{name.replace('.', '/')}.py" for name in known if name.startswith(METHODS)})


def settings_text(config: str, changes: Sequence[str] = ()) -> str:
    """Return the settings of a config with `changes`, for `code_hash`."""
    return load_settings(config, changes).model_dump_json()


@cache
def _executed(file: Path) -> str:
    return executed(file.read_text(encoding="utf-8"))


def executed(source: str) -> str:
    """Return a module's source without comments, docstrings and empty lines."""
    lines = source.splitlines()
    for first, last in _docstrings(source):
        lines[first - 1 : last] = [""] * (last - first + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(source: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
