"""A run's numbers for TensorBoard, while it trains or afterwards.

TensorBoard stamps every number with the time, and the duration of a round reveals how many providers were sampled. So
the numbers of a private run are stamped with their round instead.
"""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.extras import import_extra
from starter_kit.reporting.loggers import LoggedRun
from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    RunSummary,
    check_private,
    read_metrics,
    read_summary,
)

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

TAGS = {
    "anls": "score/ANLS",
    "accuracy": "score/accuracy",
    "sample_anls": "score/ANLS on a sample",
    "sample_accuracy": "score/accuracy on a sample",
    "sample_questions": "score/questions of the sample",
    "bytes_down": "bytes/down",
    "bytes_up": "bytes/up",
    "epsilon": "privacy/epsilon",
    "loss": "training/loss",
    "clients": "training/clients",
    "providers": "training/providers",
    "seconds": "training/seconds",
}


class EventWriter:
    """Writes rounds into `log_dir` as they end. Use as a context.

    Raises:
        ProblemError: (`E_CONFIGURATION`) TensorBoard is not installed; (`E_RUN_FOLDER`) `log_dir` can't be written.
    """

    def __init__(self, log_dir: Path) -> None:
        self._writer = _summary_writer(log_dir)

    def write(self, metrics: RoundMetrics) -> None:
        """Write the round's numbers, and flush them to disk."""
        stamp = None if metrics.epsilon is None else float(metrics.round)
        for name, tag in TAGS.items():
            if (value := getattr(metrics, name)) is not None:
                self._writer.add_scalar(tag, value, metrics.round, walltime=stamp)
        self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class TensorBoardLogger:
    """Writes the rounds of a run into a folder of its name below `folder`, for TensorBoard to show while it trains.

    Raises:
        ProblemError: (`E_CONFIGURATION`) TensorBoard is not installed.
    """

    name = "tensorboard"
    # Numbers of private runs are stamped with their round.
    shows_time = False
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, folder: Path) -> None:
        import_extra("torch.utils.tensorboard", "tensorboard", "TensorBoard")
        self._folder = folder
        self._events: EventWriter | None = None

    def open(self, run: LoggedRun) -> None:
        """Begin the run. Raises `ProblemError` as `EventWriter` does."""
        self._events = EventWriter(self._folder / run.name)

    def write(self, metrics: RoundMetrics) -> None:
        """Write a round."""
        if self._events:
            self._events.write(metrics)

    def close(self, summary: RunSummary | None) -> None:
        """End the run."""
        if self._events:
            self._events.close()


def write_events(folder: Path, log_dir: Path) -> None:
    """Write the rounds of a run folder into `log_dir`. Raises `ProblemError` as `EventWriter` and `read_metrics` do."""
    metrics = read_metrics(folder / METRICS)
    if (folder / SUMMARY).is_file():  # a run that is still training has none
        check_private(metrics, read_summary(folder / SUMMARY))
    with EventWriter(log_dir) as events:
        for line in metrics:
            events.write(line)


def _summary_writer(log_dir: Path) -> "SummaryWriter":
    module: Any = import_extra("torch.utils.tensorboard", "tensorboard", "TensorBoard")
    try:
        return cast("SummaryWriter", module.SummaryWriter(str(log_dir)))
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            where=str(log_dir),
            expected="a folder to write into",
            found=error.strerror,
        ) from error
