"""A run at Weights & Biases.

What W&B collects by itself is switched off where the run is private: the machine's load shows how long rounds take, and
what the terminal prints has not been looked through.
"""

from typing import Any

from starter_kit.extras import import_extra
from starter_kit.reporting.loggers import LoggedRun
from starter_kit.reporting.metrics import RoundMetrics, RunSummary
from starter_kit.reporting.tensorboard import TAGS

QUIET = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}


class WandbLogger:
    """Sends rounds to a project, or with `WANDB_MODE=offline` into a folder of W&B's.

    Raises:
        ProblemError: (`E_CONFIGURATION`) W&B is not installed.
    """

    name = "wandb"
    shows_time = True

    def __init__(self, project: str) -> None:
        self._wandb: Any = import_extra("wandb", "wandb", "Weights & Biases")
        self._project = project
        self._run: Any = None
        # It raises UsageError, an Error, where nobody is logged in.
        self.errors: tuple[type[Exception], ...] = (self._wandb.Error,)

    def open(self, run: LoggedRun) -> None:
        """Begin the run under its name, with its settings."""
        settings = self._wandb.Settings(silent=True, **(QUIET if run.private else {}))
        self._run = self._wandb.init(
            project=self._project, name=run.name, config=dict(run.settings), settings=settings
        )

    def write(self, metrics: RoundMetrics) -> None:
        """Send a round; its number is the step."""
        numbers = {tag: getattr(metrics, name) for name, tag in TAGS.items()}
        self._run.log({tag: value for tag, value in numbers.items() if value is not None}, step=metrics.round)

    def close(self, summary: RunSummary | None) -> None:
        """End the run, with the summary of a complete one."""
        if summary:
            self._run.summary.update(summary.model_dump(mode="json", exclude_none=True))
        self._run.finish(exit_code=0 if summary else 1)
