"""A run at an MLflow server, or in a folder or database of MLflow's."""

from typing import Any

from starter_kit.extras import import_extra
from starter_kit.reporting.loggers import LoggedRun
from starter_kit.reporting.metrics import RoundMetrics, RunSummary
from starter_kit.reporting.tensorboard import TAGS

EXPERIMENT = "pfl-docvqa"
# MLflow takes no longer values of settings.
MAX_VALUE = 6000


class MlflowLogger:
    """Sends rounds to a tracking address, or where `MLFLOW_TRACKING_URI` says.

    In private runs a number is stamped with its round in place of the time.

    Raises:
        ProblemError: (`E_CONFIGURATION`) MLflow is not installed.
    """

    name = "mlflow"
    shows_time = True

    def __init__(self, address: str) -> None:
        self._mlflow: Any = import_extra("mlflow", "mlflow", "MLflow")
        self._address = address
        self._client: Any = None
        self._id = ""
        self._private = False
        self.errors: tuple[type[Exception], ...] = (
            import_extra("mlflow.exceptions", "mlflow", "MLflow").MlflowException,
        )

    def open(self, run: LoggedRun) -> None:
        """Begin the run under its name, with its settings."""
        self._private = run.private
        self._client = self._mlflow.MlflowClient(self._address or None)
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        identity = experiment.experiment_id if experiment else self._client.create_experiment(EXPERIMENT)
        self._id = self._client.create_run(identity, run_name=run.name).info.run_id
        for name, value in run.settings.items():
            self._client.log_param(self._id, name, str(value)[:MAX_VALUE])

    def write(self, metrics: RoundMetrics) -> None:
        """Send a round; its number is the step."""
        stamp = metrics.round if self._private else None
        for name, tag in TAGS.items():
            if (value := getattr(metrics, name)) is not None:
                self._client.log_metric(self._id, tag, value, timestamp=stamp, step=metrics.round)

    def close(self, summary: RunSummary | None) -> None:
        """End the run, with the summary of a complete one as tags."""
        for name, value in summary.model_dump(mode="json", exclude_none=True).items() if summary else ():
            self._client.set_tag(self._id, name, str(value))
        self._client.set_terminated(self._id, "FINISHED" if summary else "FAILED")
