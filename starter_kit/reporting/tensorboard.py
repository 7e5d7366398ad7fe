"""A run's numbers for TensorBoard, while it trains or afterwards.

TensorBoard stamps every number with the time, and the duration of a round reveals how many providers were sampled. So
the numbers of a private run are stamped with their round instead.
"""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    check_private,
    read_metrics,
    read_summary,
)

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

TAGS = {
    "anls": "score/ANLS",
    "accuracy": "score/accuracy",
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._writer.close()


def write_events(folder: Path, log_dir: Path) -> None:
    """Write the rounds of a run folder into `log_dir`. Raises `ProblemError` as `EventWriter` and `read_metrics` do."""
    metrics = read_metrics(folder / METRICS)
    if (folder / SUMMARY).is_file():  # a run that is still training has none
        check_private(metrics, read_summary(folder / SUMMARY))
    with EventWriter(log_dir) as events:
        for line in metrics:
            events.write(line)


def _summary_writer(log_dir: Path) -> "SummaryWriter":
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="TensorBoard is not installed.",
            where="TensorBoard",
            expected="the package tensorboard",
            found=error,
            next_step="Install it with `pip install -c constraints.txt -e '.[tensorboard]'`, or leave it out.",
        ) from error
    try:
        return SummaryWriter(str(log_dir))
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            where=str(log_dir),
            expected="a folder to write into",
            found=error.strerror,
        ) from error
