"""One identity of code: what Python executes counts, and nothing else."""

import ast
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from starter_kit.runs.executed_code import ROOT, TRAINING, code_sha256, executed

SOURCE = '''"""Clip updates."""

def clip(update: float, norm: float) -> float:
    """Return the update, no longer than the norm."""
    # Because.
    if norm <= 0:
        raise ValueError(f"{norm} is no norm", "mend it")
    return min(update, norm)
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Clip updates.", "Shorten updates."),
        ("Return the update, no longer than the norm.", "Return it."),
        ("# Because.", "# As it must be."),
        ("    # Because.\n", ""),
        ("is no norm", "isn't a norm"),
        ("mend it", "fix it"),
        ("update: float, norm: float", "update:  float,\n    norm: float"),
    ],
)
def test_comments_docstrings_layout_and_messages_are_not_executed(old: str, new: str) -> None:
    assert old in SOURCE
    assert executed(SOURCE.replace(old, new)) == executed(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min(", "max("),
        ("<= 0", "< 0"),
        ("norm: float) ->", "norm: float = 2.0) ->"),
        ("ValueError", "TypeError"),
        ("{norm} is", "{update} is"),
    ],
)
def test_what_is_executed_counts(old: str, new: str) -> None:
    assert old in SOURCE
    assert executed(SOURCE.replace(old, new)) != executed(SOURCE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code that trains, where it may be changed."""
    root = tmp_path_factory.mktemp("code")
    for package in ("starter_kit", "evaluator"):
        shutil.copytree(
            ROOT / package, root / package, ignore=shutil.ignore_patterns("*.pyc", "*.safetensors")
        )
    return root


@contextmanager
def changed(root: Path, file: str, old: str, new: str) -> Iterator[None]:
    """Another text in a file, once."""
    path = root / file
    source = path.read_text(encoding="utf-8")
    assert old in source
    path.write_text(source.replace(old, new, 1), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(source, encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("starter_kit/dp/noise.py", "\n\n\n", "\n\n\n# Quieter.\n"),
        ("starter_kit/reporting/report.py", "\n\n\n", "\n\n\nprint(1)\n"),
        ("starter_kit/commands/train.py", "\n\n\n", "\n\n\nprint(1)\n"),
    ],
)
def test_a_comment_and_code_that_trains_nothing_leave_it(copy: Path, file: str, old: str, new: str) -> None:
    with changed(copy, file, old, new):
        assert code_sha256(root=copy) == code_sha256()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("starter_kit/dp/clipping.py", "clip_norm / ", "2 * clip_norm / "),
        ("starter_kit/dp/noise.py", "mul_(std)", "mul_(std * 0.5)"),
        ("starter_kit/dp/sampling.py", "return ", "return None and "),
        ("evaluator/docvqa/dataset.py", "\n\n\n", "\n\n\nprint(1)\n"),
        ("evaluator/parametrizations/lora.py", "alpha / rank", "2 * alpha / rank"),
    ],
)
def test_another_clip_noise_or_sample_is_another_trainer(copy: Path, file: str, old: str, new: str) -> None:
    with changed(copy, file, old, new):
        assert code_sha256(root=copy) != code_sha256()


# Of what training imports, what only reads, writes, judges, confines or reports.
NEVER_TRAINS = (
    "evaluator/__init__.py",
    *(
        f"evaluator/{part}/**/*.py"
        for part in ("checkpoints", "errors", "folding", "messages", "records", "sandbox")
    ),
    *(f"evaluator/communication/{module}.py" for module in ("__init__", "log", "plausibility")),
    "evaluator/scoring/metrics.py",
    *(f"starter_kit/data/{module}.py" for module in ("folders", "page_file", "summary")),
    *(f"starter_kit/{part}/**/*.py" for part in ("reporting", "site")),
    *(
        f"starter_kit/{module}.py"
        for module in ("__init__", "console", "disk", "documents", "extras", "own_files")
    ),
)


def imported(start: str) -> set[str]:
    """The files of this project that a module imports, directly or not, and its own."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        path = Path(*module.split("."))
        files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if (ROOT / file).is_file()]
        if not files or files[0].as_posix() in found:
            continue
        found.add(files[0].as_posix())
        for node in ast.walk(ast.parse((ROOT / files[0]).read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    waiting += [each.name for each in names]
                case ast.ImportFrom(module=str(parent), names=names):
                    waiting += [parent, *(f"{parent}.{each.name}" for each in names)]
    return found


def test_whatever_training_imports_counts_unless_it_is_known_to_train_nothing() -> None:
    def matching(patterns: tuple[str, ...]) -> set[str]:
        return {path.relative_to(ROOT).as_posix() for one in patterns for path in ROOT.glob(one)}

    used = imported("starter_kit.runs.training")
    assert "evaluator/parametrizations/known.py" in used
    assert used - matching(TRAINING) - matching(NEVER_TRAINS) == set()


def test_settings_count() -> None:
    assert len({code_sha256(more="rounds: 3"), code_sha256(more="rounds: 4"), code_sha256()}) == 3


def test_a_renamed_file_counts_and_a_missing_one_is_not_overlooked(copy: Path) -> None:
    (copy / "starter_kit" / "dp" / "noise.py").rename(copy / "starter_kit" / "dp" / "loud.py")
    try:
        assert code_sha256(root=copy) != code_sha256()
        with pytest.raises(ValueError, match=r"no file matches starter_kit/dp/noise.py"):
            code_sha256(["starter_kit/dp/noise.py"], root=copy)
    finally:
        (copy / "starter_kit" / "dp" / "loud.py").rename(copy / "starter_kit" / "dp" / "noise.py")
