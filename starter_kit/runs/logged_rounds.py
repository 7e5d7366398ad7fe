"""The rounds of a run, sent to its loggers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starter_kit.console import log
from starter_kit.reporting.loggers import Delivery, LoggedRun, RunLogger, flat
from starter_kit.reporting.metrics import RoundMetrics
from starter_kit.settings.run_settings import PrivateSettings, RunSettings


@contextmanager
def logged_rounds(
    loggers: Sequence[RunLogger], settings: RunSettings, earlier: Sequence[RoundMetrics]
) -> Iterator[Delivery]:
    """Yield the delivery of the run's rounds to `loggers`, to be closed with the summary of a complete run.

    Args:
        earlier: The rounds before the run was interrupted.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A logger can't be reached or written.
    """
    values = dict(flat(settings.model_dump(mode="json")))
    run = LoggedRun(settings.experiment, values, private=isinstance(settings, PrivateSettings))
    delivery = Delivery(loggers, run, earlier, log)
    try:
        yield delivery
    except BaseException:
        delivery.close(None)
        raise
