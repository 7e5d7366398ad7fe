"""Which tests `make check` selects."""

import subprocess
from pathlib import Path

import pytest

from tests.affected import affected, changed_files

FILES = {
    "evaluator/records/annex.py": "",
    "evaluator/pipeline.py": "",
    "platform/docvqa_site/ui/markdown.py": "",
    "platform/docvqa_site/teams/templates/teams/team.html": "",
    "docs/errors.md": "",
    "tests/conftest.py": "",
    "tests/evaluator/records/test_annex.py": "from evaluator.records import signing",
    "tests/evaluator/records/factories.py": "import evaluator.pipeline",
    "tests/evaluator/records/test_lies.py": "from tests.evaluator.records.factories import record",
    "tests/evaluator/test_pipeline.py": "",
    "tests/docvqa_site/teams/test_teams.py": "from docvqa_site.ui.markdown import render_markdown",
    "tests/docvqa_site/ui/conftest.py": "",
    "tests/docvqa_site/ui/test_markdown.py": "from docvqa_site.ui import markdown",
    "tests/e2e/test_path.py": "import evaluator.pipeline",
    "tests/test_docs.py": 'PAGE = "errors.md"',
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("evaluator/records/annex.py", ["tests/evaluator/records/test_annex.py"]),
        ("evaluator/records/signing.py", ["tests/evaluator/records/test_annex.py"]),
        (
            "evaluator/pipeline.py",
            ["tests/evaluator/test_pipeline.py", "tests/evaluator/records/test_lies.py"],
        ),
        (
            "platform/docvqa_site/ui/markdown.py",
            ["tests/docvqa_site/ui/test_markdown.py", "tests/docvqa_site/teams/test_teams.py"],
        ),
        ("platform/docvqa_site/teams/templates/teams/team.html", ["tests/docvqa_site/teams/test_teams.py"]),
        ("tests/evaluator/records/factories.py", ["tests/evaluator/records/test_lies.py"]),
        ("tests/docvqa_site/ui/conftest.py", ["tests/docvqa_site/ui/test_markdown.py"]),
        ("tests/docvqa_site/ui/test_markdown.py", ["tests/docvqa_site/ui/test_markdown.py"]),
        ("docs/errors.md", ["tests/test_docs.py"]),
        ("LICENSE", []),
    ],
)
def test_a_change_affects_what_mirrors_imports_or_names_it(
    tree: Path, changed: str, selected: list[str]
) -> None:
    assert affected([changed], tree) == selected


def test_a_module_of_tests_is_selected_once_for_several_changes(tree: Path) -> None:
    assert affected(["evaluator/records/annex.py", "evaluator/records/signing.py"], tree) == [
        "tests/evaluator/records/test_annex.py"
    ]


def test_a_removed_module_of_tests_is_not_selected(tree: Path) -> None:
    assert affected(["tests/docvqa_site/ui/test_gone.py"], tree) == []


def test_changed_removed_and_new_files_count_and_ignored_ones_do_not(tree: Path) -> None:
    def git(*command: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *command], cwd=tree, check=True)

    git("init", "-q")
    (tree / ".gitignore").write_text("var\n")
    git("add", "-A")
    git("commit", "-qm", "All")
    (tree / "evaluator/pipeline.py").write_text("# changed")
    (tree / "evaluator/new.py").write_text("")
    (tree / "var").write_text("")
    (tree / "docs/errors.md").unlink()
    assert changed_files("HEAD", tree) == ["docs/errors.md", "evaluator/pipeline.py", "evaluator/new.py"]
