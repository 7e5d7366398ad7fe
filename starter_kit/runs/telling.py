"""A training run as a command makes it: told on the terminal from its beginning to its end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import note, say
from starter_kit.reporting.metrics import METRICS, SUMMARY, read_metrics, read_summary
from starter_kit.reporting.rounding import epsilon_text, size_text

if TYPE_CHECKING:  # what trains takes seconds to load, and mistakes are told before
    from starter_kit.runs.training import OpenEngine
    from starter_kit.settings.run_settings import RunSettings
    from starter_kit.site.credentials import Credentials


def train_and_tell(
    settings: "RunSettings",
    *,
    data: Path,
    base: Path,
    out: Path,
    track: str,
    credentials: "Callable[[], Credentials]",
    resume: bool,
    open_engine: "OpenEngine",
) -> None:
    """`starter_kit.runs.training.train` with its progress; the file of a method of one's own is kept with the run."""
    from starter_kit.runs.progress import show_progress
    from starter_kit.runs.training import train
    from starter_kit.settings.own_methods import own_file

    with _interruptions(out), show_progress(settings.experiment) as watcher:
        train(
            settings,
            data=data,
            base=base,
            out=out,
            track=track,
            credentials=credentials,
            watcher=watcher,
            resume=resume,
            open_engine=open_engine,
        )
    if file := own_file(type(settings)):
        file.keep(out)
    say(*_outcome(out, settings.rounds))


def reject_to_overwrite(out: Path, *, resume: bool) -> None:
    """Raises `ProblemError` (`E_RUN_FOLDER`) where a new run would delete rounds that were trained."""
    folder, rounds = _unfinished(out)
    if rounds and not resume:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="A run into this folder was interrupted, and would be lost.",
            where=str(folder),
            expected="nothing there, or --resume",
            found=f"{_rounds(rounds)}, trained",
            next_step="Add --resume to go on with it; or delete that folder, or name another --out, to begin again.",
        )


def _unfinished(out: Path) -> tuple[Path, int]:
    """The folder of a run that was interrupted, and how many whole rounds it has."""

    folder = out.with_name(f"{out.name}.unfinished")
    return folder, len(read_metrics(folder / METRICS)) if (folder / METRICS).is_file() else 0


@contextmanager
def _interruptions(out: Path) -> Iterator[None]:
    """After Ctrl-C it is said what is there and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        folder, rounds = _unfinished(out)
        told = "Interrupted."
        if rounds:
            told += f" The same command with --resume goes on after round {rounds}, from {folder}"
        note(told)
        raise


def _rounds(count: int) -> str:
    return f"{count} {'round' if count == 1 else 'rounds'}"


def _outcome(run: Path, rounds: int) -> list[str]:
    """A finished run in a few lines; `rounds` is how many its settings name."""

    summary = read_summary(run / SUMMARY)
    told = f"{run}: trained with {summary.method}, {_rounds(summary.rounds)}, {size_text(summary.bytes_total)} sent"
    if summary.epsilon is not None:
        told += f", ε = {epsilon_text(summary.epsilon)} for one {summary.unit}, δ = {summary.delta:g}"
    lines = [told]
    if summary.budget is not None and summary.rounds < rounds:
        lines.append(
            f"Fewer rounds than the {rounds} of the settings: another would exceed ε = {summary.budget:g}"
        )
    return [*lines, f"{run / 'report.html'} shows it; score it with `pfl evaluate {run}`"]
