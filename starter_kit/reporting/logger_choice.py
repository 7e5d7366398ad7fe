"""The loggers that `--log` names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.loggers import RunLogger


def _tensorboard(place: str) -> RunLogger:
    from starter_kit.reporting.tensorboard import TensorBoardLogger

    return TensorBoardLogger(Path(place or "logs"))


def _wandb(place: str) -> RunLogger:
    from starter_kit.reporting.weights_and_biases import WandbLogger

    return WandbLogger(place or "pfl-docvqa")


def _mlflow(place: str) -> RunLogger:
    from starter_kit.reporting.mlflow_runs import MlflowLogger

    return MlflowLogger(place)


LOGGERS: Mapping[str, Callable[[str], RunLogger]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
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
                ErrorCode.CONFIGURATION,
                where=f"--log {text}",
                expected="tensorboard=FOLDER, wandb=PROJECT or mlflow=ADDRESS",
                found=name,
            )
        loggers.append(LOGGERS[name](place))
    return loggers
