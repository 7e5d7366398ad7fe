"""The commands that install what is missing, for a clone and for the wheel."""

import sys
from pathlib import Path

import pytest

from starter_kit.extras import PACKAGE, install_command


def installed(folder: Path, source: str | None) -> None:
    """An installation of the package, as pip records where it comes from."""
    stored = folder / f"{PACKAGE.replace('-', '_')}-0.1.0.dist-info"
    stored.mkdir(parents=True)
    (stored / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.1.0\n")
    if source:
        (stored / "direct_url.json").write_text(source)


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (
            '{"url": "file:///x", "dir_info": {"editable": true}}',
            "pip install -c constraints.txt -e '.[kit,flower]'",
        ),
        (
            '{"url": "file:///x.whl", "archive_info": {}}',
            'pip install -c constraints.txt "$(ls pfl_docvqa_benchmark-*.whl)[kit,flower]"',
        ),
        (
            '{"url": "https://site.example/pfl.whl", "archive_info": {}}',
            'pip install "pfl-docvqa-benchmark[kit,flower] @ https://site.example/pfl.whl"',
        ),
        (
            '{"url": "https://code.example/pfl", "vcs_info": {"vcs": "git", "commit_id": "0"}}',
            'pip install "pfl-docvqa-benchmark[kit,flower] @ git+https://code.example/pfl"',
        ),
        (None, 'pip install -c constraints.txt "$(ls pfl_docvqa_benchmark-*.whl)[kit,flower]"'),
    ],
    ids=["a clone", "the wheel", "a site", "a repository", "an index"],
)
def test_the_command_fits_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, command: str
) -> None:
    installed(tmp_path, source)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert install_command("flower") == command
