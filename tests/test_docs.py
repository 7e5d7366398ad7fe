"""The documentation says what the code does."""

import re
from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest
from typer.testing import CliRunner

from evaluator.errors import codes as error_codes
from evaluator.records import check_table as checks
from starter_kit.commands.main import PflGroup
from starter_kit.commands.privacy import app
from tests.studies import published_settings, settings_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / ".github" / "pull_request_template.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Pages that lead a reader to files of the code by their paths.
GUIDES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "docs" / "glossary.md"]
# What those who run a site or a worker read and use.
PRODUCTION = [
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("examinations", "operations", "reviews", "storage", "tracks", "trust-levels", "workers")
    ),
    ROOT / "SECURITY.md",
    *(
        path
        for path in sorted((ROOT / "docker").rglob("*"))
        if path.is_file() and path.parent.name != "requirements"
    ),
]


@pytest.mark.parametrize(
    ("page", "write"),
    [
        ("errors.md", error_codes.catalog),
        ("checks.md", checks.catalog),
        ("published-settings.md", lambda: published_settings.page(*published_settings.run())),
        ("settings.md", settings_page.page),
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


@pytest.mark.parametrize("page", PRODUCTION, ids=lambda page: page.name)
def test_no_guide_for_production_needs_the_tests(page: Path) -> None:
    assert re.findall(r"(?<![\w/])tests[./]\w+|make (?:test|services)|\.venv/\.test", page.read_text()) == []


def test_every_variable_of_the_environment_is_documented() -> None:
    code = [
        path for folder in ("platform", "evaluator", "starter_kit") for path in (ROOT / folder).rglob("*.py")
    ]
    read = {name for path in code for name in re.findall(r'"(PFL_[A-Z_]+)"', path.read_text())}
    assert len(read) > 60
    documented = "".join(page.read_text() for page in PAGES)
    assert {name for name in read if name not in documented} == set()


def test_the_readme_fits_on_few_screens_and_opens_with_a_picture_and_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 110
    first_screen = "\n".join(lines[:25])
    assert re.search(r"^!\[.*\]\(docs/.*\.png\)$", first_screen, re.M)
    assert re.findall(r"^make (\w+)", first_screen, re.M) == ["demo", "test"]


def test_the_page_for_contributors_is_short_enough_to_be_read() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 150


def test_commands_of_the_readme_and_of_the_roles_have_the_options_that_they_name() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs" / "roles").glob("*.md")]
    commands = {
        command
        for page in pages
        for command in re.findall(r"^ *pfl ([a-z]+)(.*?)(?: +#.*)?$", page.read_text(), re.M)
    }
    assert {verb for verb, _ in commands} >= {"data", "base", "train", "check", "evaluate", "submit", "new"}
    for verb, arguments in commands:
        subcommand = [arguments.split()[0]] if verb in {"data", "base"} else []
        shown = click.testing.CliRunner().invoke(
            PflGroup(name="pfl"), [verb, *subcommand, "--help"], env={"COLUMNS": "200"}
        )
        assert shown.exit_code == 0, shown.output
        assert [option for option in re.findall(r"--[a-z-]+", arguments) if option not in shown.output] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_files_that_a_guide_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:[a-z_.]+/)+[\w.]*|[\w.]+\.(?:py|toml|txt|cff))`", page.read_text())
    folders = [ROOT, ROOT / "platform/docvqa_site", ROOT / "evaluator", ROOT / "starter_kit"]
    assert named
    assert [path for path in named if not any((folder / path).exists() for folder in folders)] == []


def test_examples_of_the_privacy_page_print_what_it_shows() -> None:
    examples = re.findall(
        r"^\$ pfl (privacy .*)\n((?:[^$`\n].*\n)+)", (ROOT / "docs/privacy.md").read_text(), re.M
    )
    assert len(examples) == 4
    for command, shown in examples:
        result = CliRunner().invoke(app, command.split()[1:], env={"COLUMNS": "120"})
        printed = [" ".join(re.sub(r"[│┃]", " ", line).split()) for line in result.stdout.splitlines()]
        assert all(" ".join(line.split()) in printed for line in shown.splitlines()), result.stdout
