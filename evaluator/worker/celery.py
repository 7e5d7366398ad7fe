"""The workers' Celery app, and what they send back to the site."""

import os
import socket
from pathlib import Path
from typing import Any

from celery import Celery

from evaluator.contracts import EVALUATOR_QUEUE, INTAKE_QUEUE, Progress, StepReport
from evaluator.worker.broker import broker_settings

app = Celery("evaluator", include=["evaluator.worker.tasks"])
app.conf.update(
    broker_settings(os.environ.get("PFL_BROKER_URL") or f"sqlite:///{Path.cwd()}/var/broker.sqlite3")
)
app.conf.update(task_default_queue=EVALUATOR_QUEUE, worker_send_task_events=False)


def worker_name() -> str:
    """Return the name under which this process reports: its host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def send_to_site(task: str, message: Progress | StepReport, **options: Any) -> None:
    """Send a message to the site's intake; `options` are those of Celery's `send_task`.

    Raises:
        OperationalError: The broker is away.
    """
    app.send_task(task, [message.model_dump(mode="json")], queue=INTAKE_QUEUE, **options)
