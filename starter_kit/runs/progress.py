"""The progress of a run, and how a terminal or a log file shows it.

The progress never depends on which providers take part: updates are reported by client, never by provider.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from starter_kit.console import LOG_INTERVAL_S, error_console, log
from starter_kit.reporting.metrics import RoundMetrics

if TYPE_CHECKING:  # it loads torch, which takes seconds
    from starter_kit.learning.local_training import LocalStep


class Watcher:
    """Receives the progress of a run and ignores it; derive from it to show the progress."""

    def pages(self, done: int, total: int) -> None:
        """Receive how many of all pages have been read."""

    def begins(self, first: int, rounds: int, sent_bytes: int = 0) -> None:
        """Receive that training begins with round `first` of `rounds`, after `sent_bytes` in earlier rounds."""

    def local_step(self, step: "LocalStep") -> None:
        """Receive a step of a client's training in the current round; never called where something is private."""

    def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
        """Receive how many of the chosen clients' updates have arrived in the round."""

    def round_done(self, metrics: RoundMetrics) -> None:
        """Receive the metrics of a round that has been recorded."""


@contextmanager
def show_progress(experiment: str) -> Iterator[Watcher]:
    """Show a progress bar in a terminal, and elsewhere a line every few seconds, as for a log file."""
    if error_console.is_terminal:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}", markup=False),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=error_console, transient=True) as bar:
            yield _Bar(bar, experiment)
    else:
        yield _Lines(experiment)


def describe(metrics: RoundMetrics, bytes_total: int) -> str:
    """Describe a round in one line: participants, loss, bytes so far, ε so far and ANLS, where they are known."""
    parts = []
    if metrics.clients is not None:
        parts.append(f"{metrics.clients} {'client' if metrics.clients == 1 else 'clients'}")
    if metrics.providers is not None:
        parts.append(f"{metrics.providers} providers")
    if metrics.loss is not None:
        parts.append(f"loss {metrics.loss:.3f}")
    parts.append(_size(bytes_total))
    if metrics.epsilon is not None:
        parts.append(f"ε {metrics.epsilon:.3f}")
    if metrics.anls is not None:
        parts.append(f"ANLS {metrics.anls:.4f}")
    elif metrics.sample_anls is not None:
        parts.append(f"ANLS {metrics.sample_anls:.4f} on {metrics.sample_questions} questions")
    return " · ".join(parts)


def time_left(done: int, left: int, passed_s: float) -> str:
    """Return in words how long `left` rounds take if they take as long as the `done` ones, to two units at most."""
    minutes, seconds = divmod(round(passed_s / done * left), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"about {hours} h {minutes} min left"
    return f"about {minutes} min left" if minutes else f"about {seconds} s left"


def _size(size_bytes: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.2f} {unit}"
    return f"{size_bytes / 1000:.1f} kB"


def _steps(step: "LocalStep") -> str:
    return f"step {step.done}/{step.total} of a client · loss {step.recent_loss:.3f}"


class _Counting(Watcher):
    """Adds up the bytes of the rounds' messages."""

    def __init__(self, experiment: str) -> None:
        self._experiment = experiment
        self._rounds = 0
        self._round = 0
        self._bytes = 0
        self._last = time.monotonic()

    def begins(self, first: int, rounds: int, sent_bytes: int = 0) -> None:
        self._rounds = rounds
        self._round = first
        self._bytes = sent_bytes

    def _is_due(self) -> bool:
        """Whether the last line was long enough ago; if so, the next one is from now on."""
        if time.monotonic() - self._last < LOG_INTERVAL_S:
            return False
        self._last = time.monotonic()
        return True

    def round_done(self, metrics: RoundMetrics) -> None:
        self._round = metrics.round + 1
        self._last = time.monotonic()
        self._bytes += metrics.bytes_down + metrics.bytes_up


class _Bar(_Counting):
    def __init__(self, bar: Progress, experiment: str) -> None:
        super().__init__(experiment)
        self._bar = bar
        self._task = bar.add_task(f"{experiment}, pages", total=None, numbers="")

    def pages(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def begins(self, first: int, rounds: int, sent_bytes: int = 0) -> None:
        super().begins(first, rounds, sent_bytes)
        self._bar.reset(
            self._task, description=f"{self._experiment}, rounds", total=rounds, completed=first - 1
        )

    def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
        self._bar.update(self._task, description=f"{self._experiment}, {arrived} of {chosen} clients, rounds")

    def local_step(self, step: "LocalStep") -> None:
        if self._is_due():
            self._bar.update(self._task, numbers=_steps(step))

    def round_done(self, metrics: RoundMetrics) -> None:
        super().round_done(metrics)
        self._bar.update(
            self._task,
            completed=metrics.round,
            description=f"{self._experiment}, rounds",
            numbers=describe(metrics, self._bytes),
        )


class _Lines(_Counting):
    _done = 0
    _passed_s = 0.0

    def local_step(self, step: "LocalStep") -> None:
        if self._is_due():
            log(f"{self._experiment}: round {self._round}/{self._rounds}: {_steps(step)}")

    def pages(self, done: int, total: int) -> None:
        if self._is_due():
            log(f"{self._experiment}: pages {done}/{total}")

    def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
        if self._is_due():
            log(f"{self._experiment}: round {round_number}/{self._rounds}: {arrived} of {chosen} clients")

    def round_done(self, metrics: RoundMetrics) -> None:
        super().round_done(metrics)
        line = f"{self._experiment}: round {metrics.round}/{self._rounds}: {describe(metrics, self._bytes)}"
        # A private run has no seconds: how long its rounds take depends on which providers take part.
        if metrics.seconds is not None:
            self._done += 1
            self._passed_s += metrics.seconds
            if left := self._rounds - metrics.round:
                line += f" · {time_left(self._done, left, self._passed_s)}"
        log(line)
