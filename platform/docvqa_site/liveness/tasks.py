"""Check-ins of processes that take tasks.

The intake's is a task that the clock sends, so that it proves the way through the broker as well. A machine for
examinations, which may be busy for hours, shows its own beside its work.
"""

import logging
import threading
import time
from typing import Any

from celery.signals import worker_ready
from django.conf import settings
from django.db import Error, close_old_connections

from docvqa_site.celery import EXAMINATIONS_QUEUE, LIVENESS_TASK, app
from docvqa_site.liveness.models import Process, show_examinations, show_life
from evaluator.messages.jobs import INTAKE_QUEUE

logger = logging.getLogger(__name__)


@app.task(name=LIVENESS_TASK)
def show_intake() -> None:
    """Record that the intake takes messages."""
    show_life(Process.INTAKE)


@worker_ready.connect
def show_examining(**_: Any) -> None:
    """Check in from now on if this process takes examinations."""
    if EXAMINATIONS_QUEUE in app.amqp.queues.consume_from:
        threading.Thread(target=_keep_showing, name="check-in", daemon=True).start()


def _keep_showing() -> None:
    while True:
        show_machine()
        time.sleep(settings.LIVENESS_SECONDS)


def show_machine() -> None:
    """Show that this machine takes examinations; a database that is away may be back the next time."""
    close_old_connections()
    try:
        show_examinations()
    except Error:
        logger.exception("This machine can't check in.")


@worker_ready.connect
def show_start(**_: Any) -> None:
    """Record that the intake has begun to take messages, before the clock's first message comes."""
    if INTAKE_QUEUE not in app.amqp.queues.consume_from:
        return
    try:
        show_life(Process.INTAKE)
    except Error:
        # The clock's message repeats it.
        close_old_connections()
