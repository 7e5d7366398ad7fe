"""What a release says of itself. `make release` tries the rest, in an environment of its own."""

import subprocess
from pathlib import Path

import pytest

from tests.release import changes, checksums

CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n- Next.\n\n## 0.2.0 - 2026-12-01\n\n- New.\n\n## 0.2.0-rc1\n\n- Old.\n"
)


def test_the_notes_are_the_section_of_the_version() -> None:
    assert changes(CHANGELOG, "0.2.0", is_draft=False) == "## 0.2.0 - 2026-12-01\n\n- New.\n"


def test_a_draft_has_the_changes_to_come() -> None:
    assert changes(CHANGELOG, "0.2.0", is_draft=True) == "## Unreleased\n\n- Next.\n"


@pytest.mark.parametrize("version", ["0.3.0", "0.2", "0x2.0"])
def test_a_version_without_a_section_is_not_released(version: str) -> None:
    with pytest.raises(SystemExit, match="has no section"):
        changes(CHANGELOG, version, is_draft=False)


def test_the_checksums_are_read_by_sha256sum(tmp_path: Path) -> None:
    for name in ("a.whl", "b.json"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SHA256SUMS").write_text(checksums(tmp_path))
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)
    (tmp_path / "b.json").write_text("changed")
    assert subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, check=False).returncode == 1
