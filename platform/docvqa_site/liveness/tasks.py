"""The intake's sign of life: a task that the clock sends, so that it proves the way through the broker as well."""

from typing import Any

from celery.signals import worker_ready
from django.db import Error, close_old_connections

from docvqa_site.celery import LIVENESS_TASK, app
from docvqa_site.liveness.models import Process, show_life
from evaluator.messages.jobs import INTAKE_QUEUE


@app.task(name=LIVENESS_TASK)
def show_intake() -> None:
    """Record that the intake takes messages."""
    show_life(Process.INTAKE)


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
