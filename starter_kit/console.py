"""The terminal: results go to standard output, progress and problems to standard error."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.progress import OnProgress
from starter_kit.disk import full_disk, is_full
from starter_kit.documents import with_addresses

EXIT_REJECTED = 2  # exit status: the input was rejected
SHOWN_PROBLEMS = 10
LOG_INTERVAL_S = 5.0  # between two lines of progress where no terminal is attached

# What is reported of folders that can't be written.
OF_FOLDERS = {ErrorCode.RUN_FOLDER, ErrorCode.DATASET_FOLDER}
UNREADABLE = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)

console = Console()
error_console = Console(stderr=True)


def print_lines(*lines: object) -> None:
    """Print results to standard output as they are: nothing is cut, colored or interpreted as markup.

    The address of a document takes the place of its name.
    """
    for line in lines:
        console.print(with_addresses(str(line)), markup=False, highlight=False, soft_wrap=True)


def log(line: object) -> None:
    """Print a message that is not a result to standard error, as it is."""
    error_console.print(with_addresses(str(line)), markup=False, highlight=False, soft_wrap=True)


def print_problems(problems: Sequence[Problem]) -> None:
    """Print problems to standard error: the first ones in full, the others by their number."""
    for problem in problems[:SHOWN_PROBLEMS]:
        log(problem)
    if len(problems) > SHOWN_PROBLEMS:
        log(f"… and {len(problems) - SHOWN_PROBLEMS} more problems.")


@contextmanager
def exit_on_problem() -> Iterator[None]:
    """Print a `ProblemError` of the block without a traceback, and end the command with status 2.

    A file that cannot be opened is treated alike: nearly always its name was mistyped. So is a full disk.
    """
    try:
        yield
    except ProblemError as error:
        # The system says the same where other things than disks are full, such as the table of namespaces.
        full = error.problem.code in OF_FOLDERS and error.__cause__ and is_full(error.__cause__)
        print_problems(full_disk(error.problem.where).problems if full else error.problems)
        raise typer.Exit(EXIT_REJECTED) from error
    except UNREADABLE as error:
        if error.filename is None:
            raise
        print_problems([_unreadable(error)])
        raise typer.Exit(EXIT_REJECTED) from error
    except Exception as error:
        if not is_full(error):
            raise
        # In a copy, the second file is the one that is written.
        names = [getattr(error, name, None) for name in ("filename2", "filename")]
        print_problems(full_disk(next(filter(None, names), "")).problems)
        raise typer.Exit(EXIT_REJECTED) from error


def _unreadable(error: OSError) -> Problem:
    return Problem.of(
        ErrorCode.ARTIFACT_MISSING,
        message="A file or folder cannot be opened.",
        where=str(error.filename),
        found=error.strerror,
        next_step="Check the path, and that you may read and write there.",
    )


@contextmanager
def progress(label: str) -> Iterator[OnProgress]:
    """Show progress as a bar in a terminal; elsewhere as a line every few seconds, so that log files grow too."""
    if error_console.is_terminal:
        with _bar(label) as show:
            yield show
    else:
        yield _lines(label)


@contextmanager
def _bar(label: str) -> Iterator[OnProgress]:
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=error_console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def transfer() -> Iterator[Callable[[str, float, float], object]]:
    """Show on one line what is transferred, how far everything is, and the time left; elsewhere a line now and then."""
    if not error_console.is_terminal:
        yield _transfer_lines()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=error_console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)


def _transfer_lines() -> Callable[[str, float, float], object]:
    last = time.monotonic()

    def show(text: str, done: float, total: float) -> None:
        nonlocal last
        if time.monotonic() - last >= LOG_INTERVAL_S:
            last = time.monotonic()
            log(f"{text} ({done / max(total, 1):.0%} of everything)")

    return show


def _lines(label: str) -> OnProgress:
    last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= LOG_INTERVAL_S or (total and done == total):
            last = time.monotonic()
            log(f"{label} {done}/{total}")

    return show
