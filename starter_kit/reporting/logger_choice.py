"""The loggers that `--log` names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.loggers import RunLogger
from starter_kit.reporting.tensorboard import TensorBoardLogger
from starter_kit.reporting.weights_and_biases import WandbLogger

LOGGERS: Mapping[str, Callable[[str], RunLogger]] = {
    "tensorboard": lambda folder: TensorBoardLogger(Path(folder or "logs")),
    "wandb": lambda project: WandbLogger(project or "pfl-docvqa"),
}


def loggers_of(named: Sequence[str]) -> list[RunLogger]:
    """Return the loggers of the command line, each `NAME` or `NAME=WHERE`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There is no such logger, or its library isn't installed.
    """
    loggers = []
    for text in named:
        name, _, place = text.partition("=")
        if name not in LOGGERS:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION, f"--log {text}", "tensorboard=FOLDER or wandb=PROJECT", name
            )
        loggers.append(LOGGERS[name](place))
    return loggers
