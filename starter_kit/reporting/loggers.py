"""Where a run's numbers go while it trains: TensorBoard, Weights & Biases, or a logger of one's own.

A logger gets what `metrics.py` lets a run have, and the settings. That is not all that a receiver learns: one that
stamps numbers with the time, or watches the machine, knows how long each round took, and thereby how many providers
were sampled. So a private run is sent to such a logger when it is complete, all at once; see `Delivery`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.metrics import RoundMetrics, RunSummary


@dataclass(frozen=True)
class LoggedRun:
    """What a logger learns of a run before its first round.

    Attributes:
        settings: By dotted names, such as `local.learning_rate`.
        private: Whether the run spends ε.
    """

    name: str
    settings: Mapping[str, object]
    private: bool


class RunLogger(Protocol):
    """A receiver of a run's numbers.

    Attributes:
        name: As in `--log`.
        shows_time: Whether the receiver can tell when a round was sent.
        errors: What its library raises when it can't be reached or written.
    """

    name: str
    shows_time: bool
    errors: tuple[type[Exception], ...]

    def open(self, run: LoggedRun) -> None:
        """Begin the run; called once."""

    def write(self, metrics: RoundMetrics) -> None:
        """Send the numbers of a round."""

    def close(self, summary: RunSummary | None) -> None:
        """End the run, with the summary of a complete one or with None for one that failed."""


class Delivery:
    """The rounds of one run on their way to its loggers.

    A logger that fails while the run trains gets no more rounds, and training continues. Before the first round a
    failure is a mistake in the command. A logger that waits for the end of a private run is only tried then.

    Args:
        earlier: The rounds of a resumed run before it was interrupted. Each logged run is complete.
        warn: Called with a line on each logger that failed.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A logger can't be reached or written.
    """

    def __init__(
        self,
        loggers: Sequence[RunLogger],
        run: LoggedRun,
        earlier: Sequence[RoundMetrics],
        warn: Callable[[str], None],
    ) -> None:
        self._run = run
        self._rounds = list(earlier)
        self._warn = warn
        self._held = [logger for logger in loggers if run.private and logger.shows_time]
        self._live = [logger for logger in loggers if logger not in self._held]
        for logger in self._live:
            _begin(logger, run, earlier)

    def write(self, metrics: RoundMetrics) -> None:
        """Send a round to the loggers that may get it now."""
        self._rounds.append(metrics)
        self._live = [logger for logger in self._live if self._reached(logger, lambda to: to.write(metrics))]

    def close(self, summary: RunSummary | None) -> None:
        """End the run at all loggers; those that were kept waiting get a complete one as a whole, else nothing."""
        for logger in self._live:
            self._reached(logger, lambda to: to.close(summary))
        for logger in self._held if summary else ():
            self._reached(logger, lambda to: self._send_whole(to, summary))

    def _send_whole(self, logger: RunLogger, summary: RunSummary | None) -> None:
        logger.open(self._run)
        for metrics in self._rounds:
            logger.write(metrics)
        logger.close(summary)

    def _reached(self, logger: RunLogger, send: Callable[[RunLogger], None]) -> bool:
        failures: tuple[type[Exception], ...] = (OSError, ProblemError, *logger.errors)
        try:
            send(logger)
        except failures as error:
            self._warn(f"{logger.name}: can't be reached, and gets no more of this run: {error}")
            return False
        return True


def _begin(logger: RunLogger, run: LoggedRun, earlier: Sequence[RoundMetrics]) -> None:
    """Begin the run at a logger, with its earlier rounds; a failure becomes a `ProblemError` (`E_CONFIGURATION`)."""
    failures: tuple[type[Exception], ...] = (OSError, *logger.errors)
    try:
        logger.open(run)
        for metrics in earlier:
            logger.write(metrics)
    except failures as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="A logger can't be reached.",
            where=f"--log {logger.name}",
            expected="a place that takes the run",
            found=error,
            next_step="Correct the address or log in there, or leave the logger out.",
        ) from error


def flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield settings by their dotted names."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
