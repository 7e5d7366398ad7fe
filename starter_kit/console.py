"""What the `pfl` command prints: results to standard output, progress and problems to standard error."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evaluator.errors import ErrorCode, Problem, ProblemError

REJECTED = 2  # exit status: the input was rejected
SHOWN_PROBLEMS = 10
PLAIN_PAUSE_S = 5.0  # between two lines of progress where no terminal is attached

UNREADABLE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)

OnProgress = Callable[[int, int], None]  # (done, total)

console = Console()
complaints = Console(stderr=True)


def say(*lines: object) -> None:
    """Print results, as they are: nothing is cut, colored or taken for markup."""
    for line in lines:
        console.print(str(line), markup=False, highlight=False, soft_wrap=True)


def note(line: object) -> None:
    """Print, likewise, what is no result."""
    complaints.print(str(line), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def rejections() -> Iterator[None]:
    """What is rejected inside the block is printed, without a traceback, and ends the command with status 2.

    So is a file that can't be opened: nearly always it was named wrongly.
    """
    try:
        yield
    except ProblemError as error:
        complain(error.problems)
        raise typer.Exit(REJECTED) from error
    except UNREADABLE as error:
        if error.filename is None:
            raise
        complain(_unreadable(str(error.filename), error).problems)
        raise typer.Exit(REJECTED) from error


def _unreadable(name: str, error: OSError) -> ProblemError:
    return ProblemError.of(
        ErrorCode.ARTIFACT_MISSING,
        message="A file or folder can't be opened.",
        where=name,
        found=error.strerror,
        next_step="See that the path is right, and that you may read and write there.",
    )


def complain(problems: Sequence[Problem]) -> None:
    for problem in problems[:SHOWN_PROBLEMS]:
        note(problem)
    if len(problems) > SHOWN_PROBLEMS:
        note(f"… and {len(problems) - SHOWN_PROBLEMS} more problems.")


@contextmanager
def progress(label: str) -> Iterator[OnProgress]:
    """A bar in a terminal; elsewhere a line every few seconds, so that a log file shows life too."""
    if complaints.is_terminal:
        with _bar(label) as show:
            yield show
    else:
        yield _lines(label)


@contextmanager
def _bar(label: str) -> Iterator[OnProgress]:
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=complaints, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(label: str) -> OnProgress:
    last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_PAUSE_S or (total and done == total):
            last = time.monotonic()
            note(f"{label} {done}/{total}")

    return show
