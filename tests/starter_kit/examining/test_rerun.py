"""A rerun reads what an untrusted training wrote as it would read an upload."""

from pathlib import Path

import pytest

from evaluator.errors import ProblemError
from starter_kit.examining.rerun import regular_file


def test_a_link_in_a_run_folder_is_no_file_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the answers")
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "model.safetensors"
    link.symlink_to(tmp_path / "secret")
    for path in (
        link,
        tmp_path / "folder" / ".." / "secret",
        tmp_path / "secret",
        tmp_path / "folder" / "none",
    ):
        with pytest.raises(ProblemError, match="E_RERUN_TRAINING"):
            regular_file(tmp_path / "folder", path)
