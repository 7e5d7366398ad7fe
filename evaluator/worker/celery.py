"""The workers' Celery app, and what they send back to the site."""

import os
import secrets
from typing import Any

from celery import Celery

from evaluator.messages.jobs import INTAKE_QUEUE, Progress, WorkerReport
from evaluator.messages.signed import sign
from evaluator.worker.broker import is_rabbitmq, worker_settings
from evaluator.worker.home import broker_url
from evaluator.worker.logs import log_tasks_in_context, logging_settings

# Without the fixups: Celery would load the site beside the worker wherever the environment names its settings.
app = Celery("evaluator", include=["evaluator.worker.tasks"], fixups=[])
_url = broker_url()
app.conf.update(worker_settings(_url))

# RabbitMQ lets an account write to exchanges, not to queues: to the one that leads to the intake and to no other.
TO_INTAKE: dict[str, Any] = {"queue": INTAKE_QUEUE, "declare": []} | (
    {"exchange": INTAKE_QUEUE, "routing_key": INTAKE_QUEUE} if is_rabbitmq(_url) else {}
)
log_tasks_in_context(
    logging_settings(os.environ.get("PFL_LOG_FORMAT", "text"), os.environ.get("PFL_LOG_LEVEL", "INFO")),
)

# The name under which this process reports. It says nothing of the machine unless the organizers choose that.
WORKER_NAME = os.environ.get("PFL_WORKER_NAME") or f"worker-{secrets.token_hex(4)}"


def send_to_site(task: str, message: Progress | WorkerReport, secret: str, **options: Any) -> None:
    """Send a message to the site's intake, signed with the job's secret; `options` are those of `send_task`.

    Raises:
        OperationalError: The broker is away.
    """
    send_signed(task, sign(message, secret).model_dump(mode="json"), **options)


def send_signed(task: str, signed: dict[str, Any], **options: Any) -> None:
    """Send a message that is signed already. Raises `OperationalError`, as `send_to_site`."""
    app.send_task(task, [signed], **TO_INTAKE, **options)
