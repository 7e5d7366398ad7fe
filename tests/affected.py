"""Which tests a change affects: `python -m tests.affected` prints them, `make check` runs them.

The rule, for each file that differs from a commit (HEAD unless another is named) or that git doesn't know:

- A module of tests affects itself; a `conftest.py` affects its folder.
- A Python module affects the modules of tests that import it, and the one that mirrors its place:
  `evaluator/pipeline.py` is mirrored by `tests/evaluator/test_pipeline.py`.
- A helper module, such as `tests/docvqa_site/factories.py`, affects the modules of tests that import it, also
  through other modules of the tests.
- A template, script or style of the site affects the tests of its app.
- Any other file affects the modules of tests that name it.

Imports are followed through modules of the tests alone: through the code, everything would affect nearly everything. So
this is for the minutes between two runs of `make test` and doesn't replace one. Where more than `MAX_MODULES` are
affected, as by a change of the factories, only the ones nearest to the change run, and a line says so.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
# About a minute for a change in one place.
MAX_MODULES = 12
# Folders of tests that take minutes.
NOT_RUN = {"benchmarks", "e2e", "faults", "journeys"}


def affected(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the modules of tests that changes of these files affect, those nearest to a change first."""
    imports = {path: imported(root / path) for path in python_files(root)}
    found = [test for path in changed for test in _of(PurePosixPath(path), imports, root)]
    return [test for test in dict.fromkeys(found) if (root / test).exists()]


def python_files(root: Path) -> list[str]:
    """Return the Python files under `tests`, as paths from the root."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("*.py"))


@cache
def imported(file: Path) -> frozenset[str]:
    """Return the names of the modules, and of what is in them, that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _of(path: PurePosixPath, imports: Mapping[str, frozenset[str]], root: Path) -> Iterator[str]:
    if path.suffix == ".py":
        yield from _mirror(path, imports)
        yield from _importing(module_name(path), imports)
    elif path.parts[:2] == ("platform", "docvqa_site"):
        yield from _within(PurePosixPath("tests", "docvqa_site", path.parts[2]), imports)
    else:
        yield from (test for test in imports if _is_test(test) and path.name in (root / test).read_text())


def module_name(path: PurePosixPath) -> str:
    """Return the name by which tests import the module in this file."""
    parts = path.with_suffix("").parts
    parts = parts[1:] if parts[0] == "platform" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _mirror(path: PurePosixPath, imports: Mapping[str, frozenset[str]]) -> Iterator[str]:
    if path.parts[0] == "tests":
        yield from [str(path)] if _is_test(str(path)) else []
        yield from _within(path.parent, imports) if path.name == "conftest.py" else []
    else:
        inner = path.parent.parts[path.parts[0] == "platform" :]
        mirror = str(PurePosixPath("tests", *inner, f"test_{path.name}"))
        yield from [mirror] if mirror in imports else []


def _importing(module: str, imports: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield the modules of tests that import a module, directly or through modules of the tests, the nearest first."""
    names, seen = [module], {module}
    for name in names:
        users = [path for path, modules in imports.items() if name in modules]
        yield from filter(_is_test, users)
        further = {module_name(PurePosixPath(user)) for user in users if not _is_test(user)} - seen
        seen |= further
        names += sorted(further)


def _within(folder: PurePosixPath, imports: Mapping[str, frozenset[str]]) -> Iterator[str]:
    return (path for path in imports if PurePosixPath(path).is_relative_to(folder) and _is_test(path))


def _is_test(path: str) -> bool:
    folder, *_ = PurePosixPath(path).parts[1:]
    return PurePosixPath(path).name.startswith("test_") and folder not in NOT_RUN


def changed_files(base: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from the commit `base`, and those that git doesn't know and doesn't ignore."""
    commands = (
        ["git", "diff", "--name-only", base],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    return [
        line
        for command in commands
        for line in subprocess.run(
            command, cwd=root, text=True, stdout=subprocess.PIPE, check=True
        ).stdout.splitlines()
    ]


def main(arguments: list[str]) -> None:
    tests = affected(changed_files(arguments[0] if arguments else "HEAD"))
    if len(tests) > MAX_MODULES:
        left_out = len(tests) - MAX_MODULES
        print(
            f"{len(tests)} modules of tests are affected: {left_out} are left to make test.", file=sys.stderr
        )
    print("\n".join(tests[:MAX_MODULES]))


if __name__ == "__main__":
    main(sys.argv[1:])
