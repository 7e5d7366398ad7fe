"""The site's tasks. Workers call the first three by name, the clock the last; another one is for examinations."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from celery.signals import worker_ready

from docvqa_site.celery import EXAMINATIONS_QUEUE, EXAMINE_TASK, WATCH_TASK, app
from docvqa_site.evaluation import inventories
from docvqa_site.evaluation.examining import running
from docvqa_site.evaluation.intake import messages, receiving
from docvqa_site.evaluation.queue import dispatch, watchdog
from evaluator.messages.inventories import INVENTORY_TASK, Inventory
from evaluator.messages.jobs import PROGRESS_TASK, REPORT_TASK

Content = TypeVar("Content")

logger = logging.getLogger(__name__)


@worker_ready.connect
def make_queues(**_: Any) -> None:
    """Make the workers' queues when the intake starts, before anything is submitted."""
    dispatch.declare_queues()


@app.task(name=PROGRESS_TASK)
def receive_progress(message: object) -> None:
    """Store a worker's progress; a message that no worker of ours sends is dropped."""
    if progress := _parsed(messages.parse_progress, message):
        receiving.receive_progress(progress)


@app.task(name=REPORT_TASK)
def receive_report(message: object) -> None:
    """Store a worker's report; a message that no worker of ours sends is dropped."""
    if report := _parsed(messages.parse_report, message):
        receiving.receive_report(report)


@app.task(name=INVENTORY_TASK)
def receive_inventory(message: object) -> None:
    """Store what a worker has."""
    if inventory := _parsed(Inventory.model_validate, message):
        inventories.receive(inventory)


def _parsed(parse: Callable[[object], Content], message: object) -> Content | None:
    try:
        return parse(message)
    except ValueError as error:
        logger.error("Dropped a malformed message: %s", error)
        return None


@app.task(name=EXAMINE_TASK, acks_late=False)
def examine() -> None:
    """Run the oldest examination that waits.

    The message is acknowledged first: an examination takes longer than brokers wait, and the database keeps it. Workers
    may send messages to the intake, which never runs a method's code for one.
    """
    if EXAMINATIONS_QUEUE not in app.amqp.queues.consume_from:
        logger.error("This process takes no examinations; the message is dropped.")
        return
    running.run_next()


app.task(name=WATCH_TASK)(watchdog.watch)
