"""The heartbeat of a running step."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

from kombu.exceptions import OperationalError

from evaluator.contracts import PROGRESS_TASK, EvaluationJob, Progress
from evaluator.worker.celery import send_to_site, worker_name
from evaluator.worker.time_left import Pace

logger = logging.getLogger(__name__)

HEARTBEAT_S = 2.0


class Heartbeat:
    """Reports every few seconds that the worker is alive and how far it is, whatever the step is doing."""

    def __init__(self, job: EvaluationJob) -> None:
        self.job = job
        self.pace = Pace()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def set(self, done: int, total: int) -> None:
        self.pace = self.pace.at(done, total, time.monotonic())

    @contextlib.contextmanager
    def beating(self) -> Iterator["Heartbeat"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def _beat(self) -> None:
        while True:
            pace, job = self.pace, self.job
            message = Progress(
                evaluation=job.evaluation,
                attempt=job.attempt,
                step=job.step,
                done=pace.done,
                total=pace.total,
                remaining_s=pace.remaining_s(time.monotonic()),
                worker=worker_name(),
            )
            try:
                send_to_site(PROGRESS_TASK, message, retry=False)
            except OperationalError:
                logger.warning("a heartbeat could not be sent; the next one follows")
            if self._stop.wait(HEARTBEAT_S):
                return
