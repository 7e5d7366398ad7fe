"""The documentation says what the code does."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluator.errors import codes as error_codes
from evaluator.records import check_texts as checks
from starter_kit.commands.privacy import app
from starter_kit.settings import reference
from tests.studies import published_settings as published

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / ".github" / "pull_request_template.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Pages that lead a reader to files of the code by their paths.
GUIDES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "docs" / "glossary.md"]


@pytest.mark.parametrize(
    ("page", "write"),
    [
        ("errors.md", error_codes.catalog),
        ("checks.md", checks.catalog),
        ("published-settings.md", published.table),
        ("settings.md", reference.page),
    ],
)
def test_generated_pages_are_what_the_code_writes(page: str, write: Callable[[], str]) -> None:
    assert (ROOT / "docs" / page).read_text() == write(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_that_are_named_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", page.read_text()))
    assert named <= targets


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_files_that_a_guide_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:[a-z_.]+/)+[\w.]*|[\w.]+\.(?:py|toml|txt|cff))`", page.read_text())
    folders = [ROOT, ROOT / "platform/portal", ROOT / "evaluator", ROOT / "starter_kit"]
    assert named
    assert [path for path in named if not any((folder / path).exists() for folder in folders)] == []


def test_examples_of_the_privacy_page_print_what_it_shows() -> None:
    examples = re.findall(
        r"^    \$ pfl (privacy .*)\n((?:    [^$\n].*\n)+)", (ROOT / "docs/privacy.md").read_text(), re.M
    )
    assert len(examples) == 4
    for command, shown in examples:
        result = CliRunner().invoke(app, command.split()[1:], env={"COLUMNS": "120"})
        printed = [" ".join(re.sub(r"[│┃]", " ", line).split()) for line in result.stdout.splitlines()]
        assert all(" ".join(line.split()) in printed for line in shown.splitlines()), result.stdout
