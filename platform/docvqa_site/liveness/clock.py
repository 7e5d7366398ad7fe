"""The clock's scheduler: Celery's own, which also shows that it works."""

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings
from django.db import Error, close_old_connections

from docvqa_site.liveness.models import Process, show_life

logger = logging.getLogger(__name__)


class LivelyScheduler(PersistentScheduler):
    """Checks in beside each look at the schedule, every `LIVENESS_SECONDS` at most."""

    shown_at = float("-inf")

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Send what is due, check in, and return the seconds to sleep."""
        pause: float = super().tick(*arguments, **options)
        if time.monotonic() - self.shown_at >= settings.LIVENESS_SECONDS:
            self._show_life()
        return min(pause, settings.LIVENESS_SECONDS)

    def _show_life(self) -> None:
        close_old_connections()
        try:
            show_life(Process.CLOCK)
        except Error:
            # The clock's work needs no database, and the next look follows.
            logger.exception("The clock can't check in.")
        else:
            self.shown_at = time.monotonic()
