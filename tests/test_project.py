"""The shape of the project: what `platform/` must never become, and that everything stays importable."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAYS_STDLIB = "import platform, uuid; assert platform.system(); print(platform.__file__)"
STDLIB = str(Path(os.__file__).parent / "platform.py")


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )


# Lines of the site that ask what kind a track is of: by a question that the kind answers, by its name or its first
# result, or by whether a board or run has a budget.
ASKS_FOR_THE_KIND = re.compile(
    r"\.(?:has_budgets|is_accounted|needs_proof)\b|\bprivacy is (?:not )?None|\bif (?:\w+\.)*in_bytes\b"
    r"|\btrack\.kind(?:\.key|\.first)? (?:==|!=|is|in)\b"
    r"|\.ranking (?:==|!=|in) "
    r"|\bbudget(?:\"\])? is (?:not )?None"
    r"|(?:\bif |\bnot |\belif )(?:\w+\.)*(?:budget|board\[\"budget\"\])(?: else\b| %|:$|\)| and | or )"
    r"|\bbudget or "
)
MOST_LINES = 20


def test_platform_is_a_source_root_and_no_package() -> None:
    assert not (ROOT / "platform" / "__init__.py").exists()
    assert not (ROOT / "platform" / "platform.py").exists()


@pytest.mark.parametrize("folder", ["", "platform", "platform/docvqa_site", "tests"])
def test_import_platform_gives_the_standard_library_from_any_folder(folder: str) -> None:
    result = run(sys.executable, "-c", SAYS_STDLIB, cwd=ROOT / folder)
    assert result.stdout.strip() == STDLIB, result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("manage.py", "shell", "--no-imports", "-v", "0", "-c", SAYS_STDLIB),
        ("-m", "django", "shell", "--no-imports", "-v", "0", "-c", SAYS_STDLIB),
    ],
    ids=["manage.py", "django"],
)
def test_import_platform_gives_the_standard_library_under_django(command: tuple[str, ...]) -> None:
    result = run(sys.executable, *command, DJANGO_SETTINGS_MODULE="docvqa_site.settings")
    assert result.stdout.strip().splitlines()[-1] == STDLIB, result.stderr


def test_import_platform_gives_the_standard_library_under_pytest(tmp_path: Path) -> None:
    import platform

    assert platform.__file__ == STDLIB


@pytest.mark.parametrize("app", ["docvqa_site.celery", "evaluator.worker"])
def test_celery_loads_its_apps_with_the_standard_library_s_platform(app: str) -> None:
    check = f"{SAYS_STDLIB}; from celery.__main__ import main; main()"
    result = run(sys.executable, "-c", check, "-A", app, "worker", "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(STDLIB)


def test_gunicorn_loads_the_site_with_the_standard_library_s_platform() -> None:
    result = run(sys.executable, "-m", "gunicorn", "--check-config", "docvqa_site.wsgi")
    assert result.returncode == 0, result.stderr


def test_the_web_process_loads_no_torch() -> None:
    result = run(
        sys.executable,
        "-c",
        "import docvqa_site.wsgi, sys; print('torch' in sys.modules, 'transformers' in sys.modules)",
    )
    assert result.stdout.strip().splitlines()[-1] == "False False", result.stderr


def test_few_lines_of_the_site_ask_what_kind_a_track_is_of() -> None:
    """A kind has a field that answers instead; see "Add a kind of track" in CONTRIBUTING.md."""
    site = ROOT / "platform" / "docvqa_site"
    asking = [
        f"{path.relative_to(site)}:{number}: {line.strip()}"
        for path in sorted(site.rglob("*"))
        if path.suffix in {".py", ".html", ".txt"} and "migrations" not in path.parts
        if path != site / "challenge" / "rankings.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ASKS_FOR_THE_KIND.search(line)
    ]
    assert len(asking) <= MOST_LINES, "\n".join(asking)


def test_the_evaluator_has_few_parts_that_import_few_others() -> None:
    """That none imports upward is a contract of import-linter."""
    root = ROOT / "evaluator"
    parts = {path.stem for path in root.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    imports = set()
    for path in root.rglob("*.py"):
        own = path.relative_to(root).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("evaluator."):
                imports.add((own, node.module.split(".")[1]))
    assert {part for _, part in imports} < parts
    assert len(parts) <= 18
    assert len({(own, part) for own, part in imports if own != part}) <= 51
