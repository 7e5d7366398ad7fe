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
        ('{"url": "file:///x", "dir_info": {"editable": true}}', "-e '.[kit,flower]'"),
        ('{"url": "file:///x.whl", "archive_info": {}}', '"$(ls pfl_docvqa_benchmark-*.whl)[kit,flower]"'),
        (None, '"$(ls pfl_docvqa_benchmark-*.whl)[kit,flower]"'),
    ],
    ids=["a clone", "the wheel", "an index"],
)
def test_the_command_fits_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, command: str
) -> None:
    installed(tmp_path, source)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert install_command("flower") == f"pip install -c constraints.txt {command}"
