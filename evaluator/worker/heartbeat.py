"""The heartbeat of a running step."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

from kombu.exceptions import OperationalError

from evaluator.messages.jobs import PROGRESS_TASK, JobHead, Progress
from evaluator.worker.celery import WORKER_NAME, send_to_site
from evaluator.worker.time_left import Pace

logger = logging.getLogger(__name__)

HEARTBEAT_S = 2.0
# Nothing is lost yet when a step can't begin, so a minute of a broker's absence is enough.
ANNOUNCEMENT_RETRIES = {"max_retries": 10, "interval_start": 1, "interval_step": 1, "interval_max": 5}


class Heartbeat:
    """Reports every few seconds that the worker is alive and how far it is, whatever the step is doing."""

    def __init__(self, job: JobHead) -> None:
        self.job = job
        self.pace = Pace()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def set(self, done: int, total: int) -> None:
        self.pace = self.pace.at(done, total, time.monotonic())

    def announce(self) -> None:
        """Report that the step begins, and return when the broker has that.

        Raises:
            OperationalError: The broker is away, for longer than its message needs to be handed out again.
        """
        self._send(retry=True, retry_policy=ANNOUNCEMENT_RETRIES)

    @contextlib.contextmanager
    def beating(self) -> Iterator["Heartbeat"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            try:
                self._send(retry=False)
            except OperationalError:
                logger.warning("a heartbeat could not be sent; the next one follows")

    def _send(self, **options: Any) -> None:
        pace, job = self.pace, self.job
        message = Progress(
            evaluation=job.evaluation,
            attempt=job.attempt,
            step=job.step,
            done=pace.done,
            total=pace.total,
            remaining_s=pace.remaining_s(time.monotonic()),
            worker=WORKER_NAME,
        )
        send_to_site(PROGRESS_TASK, message, job.secret, **options)
