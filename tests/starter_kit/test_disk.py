"""A full disk, as several libraries report it: /dev/full has no room for anything."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import EXIT_REJECTED, exit_on_problem
from starter_kit.data.folders import atomic_folder
from starter_kit.weights import tiny_vt5

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def write(_: Path) -> None:
    FULL.write_text("x")


def write_for_another_reason(folder: Path) -> None:
    try:
        FULL.write_text("x")
    except OSError as error:
        raise ProblemError.of(ErrorCode.RUN_FOLDER, str(folder)) from error


def copy_file(folder: Path) -> None:
    # As shutil.copyfile reports it, with the names of both files.
    raise OSError(errno.ENOSPC, "No space left on device", "here", None, str(folder / "there"))


def write_folder(folder: Path) -> None:
    with atomic_folder(folder / "new", force=False, entries=frozenset()):
        FULL.write_text("x")


def copy(folder: Path) -> None:
    (folder / "there").mkdir()
    (folder / "there" / "config.json").symlink_to(FULL)
    shutil.copytree(tiny_vt5.FOLDER, folder / "there", dirs_exist_ok=True)


@pytest.mark.parametrize(
    ("attempt", "where"),
    [
        (write, ""),
        (write_for_another_reason, "where: {}\n"),
        (copy_file, "where: {}/there\n"),
        (copy, ""),
        (write_folder, "where: {}/new\n"),
    ],
)
def test_a_full_disk_is_a_problem_and_not_a_traceback(
    tmp_path: Path, attempt: Callable[[Path], None], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, exit_on_problem():
        attempt(tmp_path)
    assert ended.value.exit_code == EXIT_REJECTED
    said = capsys.readouterr().err
    assert "E_DISK_FULL: The disk is full." in said
    assert where.format(tmp_path) in said


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError), exit_on_problem():
        raise ZeroDivisionError
