"""The identity of code: a hash of what Python executes, for training records, replays, proofs and counts.

Comments, docstrings, layout and the texts of exceptions don't count, since none of them changes a result. Everything
else does, names and imports included. The hash is taken of the syntax tree, so that it doesn't depend on the version of
Python.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What decides the result of a training. The rest imports data, reports, submits or judges.
TRAINING = (
    *(f"starter_kit/{module}.py" for module in ("memory", "optimizers", "plugin", "randomness")),
    *(
        f"starter_kit/{part}/**/*.py"
        for part in (
            "compression",
            "dp",
            "engines",
            "federation",
            "learning",
            "methods",
            "plugins",
            "runs",
            "secure_aggregation",
            "settings",
            "weights",
        )
    ),
    *(f"evaluator/{part}/**/*.py" for part in ("accounting", "docvqa", "mechanisms", "parametrizations")),
    "evaluator/checkpoints/weight_vector.py",
    *(f"evaluator/communication/{module}.py" for module in ("codecs", "nf4")),
    "evaluator/folding/server_step.py",
    *(f"evaluator/records/{module}.py" for module in ("merging", "round_keys", "server_steps")),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Fields of syntax trees that versions of Python fill differently, and that say nothing of what is executed.
IGNORED = {"ctx", "kind", "type_comment", "type_ignores"}


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def code_sha256(
    patterns: Iterable[str] = TRAINING,
    more: str = "",
    *,
    root: Path = ROOT,
    read: Callable[[Path], str] = _read,
) -> str:
    """Return the SHA-256 of what the files that match execute, and of `more`.

    Args:
        patterns: Globs, relative to `root`, the folder that has `starter_kit` and `evaluator`.
        read: Returns the source of a file, perhaps without what else doesn't count.

    Raises:
        ValueError: No file matches one of them.
    """
    digest = hashlib.sha256(more.encode())
    for name in sorted({name for pattern in patterns for name in _matching(root, pattern)}):
        digest.update(f"\n{name}\n{_sha256(read(root / name))}".encode())
    return digest.hexdigest()


def _matching(root: Path, pattern: str) -> list[str]:
    found = [path.relative_to(root).as_posix() for path in root.glob(pattern)]
    if not found:
        raise ValueError(f"no file matches {pattern}")
    return found


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of what a file executes."""
    return _sha256(_read(file))


@cache
def _sha256(source: str) -> str:
    return hashlib.sha256(executed(source).encode()).hexdigest()


def executed(source: str) -> str:
    """Return the syntax tree of a module as text, without what doesn't count."""
    return _text(ast.parse(source), is_raised=False)


def _text(node: object, *, is_raised: bool) -> str:
    match node:
        case ast.AST():
            fields = dict(ast.iter_fields(node))
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                fields["body"] = fields["body"][1:]
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_raised:
                fields["value"] = ""
            inside = is_raised or isinstance(node, ast.Raise)
            parts = (
                f"{name}={_text(value, is_raised=inside)}"
                for name, value in fields.items()
                if name not in IGNORED and value not in (None, [])
            )
            return f"{type(node).__name__}({','.join(parts)})"
        case list():
            return f"[{','.join(_text(one, is_raised=is_raised) for one in node)}]"
        case _:
            return repr(node)
