"""A run's numbers for TensorBoard, while it trains or afterwards.

TensorBoard stamps every number with the time, and the duration of a round reveals how many providers were sampled. So
the numbers of a private run are stamped with their round instead.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    "questions": "score/questions",
    "sample_questions": "score/questions of the sample",
    "bytes_down": "bytes/down",
    "bytes_up": "bytes/up",
    "epsilon": "privacy/epsilon",
    "loss": "training/loss",
    "clients": "training/clients",
    "providers": "training/providers",
    "seconds": "training/seconds",
}


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
        self._module: Any = import_extra(
            "torch.utils.tensorboard", "tensorboard", "TensorBoard", package="tensorboard"
        )
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def open(self, run: LoggedRun) -> None:
        """Begin the run. Raises `ProblemError` (`E_RUN_FOLDER`) where the folder can't be written."""
        place = self._folder / run.name
        try:
            self._writer = self._module.SummaryWriter(str(place))
        except OSError as error:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                str(place),
                "a folder to write into",
                error.strerror,
                message="The events for TensorBoard can't be written.",
                next_step="Name a folder that you can write into.",
            ) from error

    def write(self, metrics: RoundMetrics) -> None:
        """Write the round's numbers, and flush them to disk."""
        stamp = None if metrics.epsilon is None else float(metrics.round)
        if writer := self._writer:
            for name, tag in TAGS.items():
                if (value := getattr(metrics, name)) is not None:
                    writer.add_scalar(tag, value, metrics.round, walltime=stamp)
            writer.flush()

    def close(self, summary: RunSummary | None) -> None:
        """Close the files."""
        if self._writer:
            self._writer.close()


def write_events(folder: Path, log_dir: Path) -> None:
    """Write the rounds of a run folder into `log_dir`.

    Raises:
        ProblemError: As `TensorBoardLogger` and `read_metrics` do.
    """
    metrics = read_metrics(folder / METRICS)
    # A run that is still training has no summary.
    summary = read_summary(folder / SUMMARY) if (folder / SUMMARY).is_file() else None
    if summary:
        check_private(metrics, summary)
    logger = TensorBoardLogger(log_dir)
    logger.open(LoggedRun("", {}, private=summary is not None and summary.unit is not None))
    for line in metrics:
        logger.write(line)
    logger.close(summary)
