"""A full disk, as several libraries report it: /dev/full has no room for anything."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from starter_kit.console import EXIT_REJECTED, exit_on_problem
from starter_kit.weights import tiny_vt5

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def write(_: Path) -> None:
    FULL.write_text("x")


def copy(folder: Path) -> None:
    (folder / "there").mkdir()
    (folder / "there" / "config.json").symlink_to(FULL)
    shutil.copytree(tiny_vt5.FOLDER, folder / "there", dirs_exist_ok=True)


@pytest.mark.parametrize("attempt", [write, copy], ids=["a file", "a folder"])
def test_a_full_disk_is_a_problem_and_not_a_traceback(
    tmp_path: Path, attempt: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, exit_on_problem():
        attempt(tmp_path)
    assert ended.value.exit_code == EXIT_REJECTED
    assert "E_DISK_FULL: The disk is full." in capsys.readouterr().err


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError), exit_on_problem():
        raise ZeroDivisionError
