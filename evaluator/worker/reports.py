"""Reports on their way to the site. Each is also on the worker's disk until the broker has it.

A broker that is away, or whose disk is full, therefore costs no finished step, even if the worker is restarted.
The site counts a report once, and drops one whose attempt it has given up.
"""

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kombu.exceptions import OperationalError

from evaluator.messages.jobs import REPORT_TASK, WorkerReport
from evaluator.messages.signed import sign
from evaluator.worker.celery import send_signed

logger = logging.getLogger(__name__)

Send = Callable[[dict[str, Any]], None]
FOLDER = "reports"
# How often Celery tries by itself before it says that the broker is away, and how long to wait after that.
RETRIES = {"max_retries": 10, "interval_start": 1, "interval_step": 1, "interval_max": 5}
PAUSE_S = 5.0


def send_report(signed: dict[str, Any]) -> None:
    """Send a signed report. Raises `OperationalError` if the broker is away."""
    send_signed(REPORT_TASK, signed, retry=True, retry_policy=RETRIES)


def deliver(folder: Path, report: WorkerReport, secret: str, send: Send = send_report) -> None:
    """Send the report, however long the broker is away; until then it is in the worker's `folder`."""
    signed = sign(report, secret).model_dump(mode="json")
    name = f"{report.evaluation}-{report.attempt}-{report.step}"
    path = folder / FOLDER / f"{name}.json"
    try:
        _keep(path, signed)
    except OSError as error:
        # The disk may be full. It is sent from memory.
        logger.error("%s: the report can't be kept on disk: %s", name, error)
    _send(path, signed, send)


def deliver_kept(folder: Path, send: Send = send_report) -> None:
    """Send what a worker of this folder kept when it ended."""
    for path in sorted((folder / FOLDER).glob("*.json")):
        # Another worker of the folder may have sent it.
        with contextlib.suppress(FileNotFoundError):
            _send(path, json.loads(path.read_text()), send)


def _send(path: Path, signed: dict[str, Any], send: Send) -> None:
    while True:
        try:
            send(signed)
            break
        except OperationalError as error:
            logger.error("%s: the broker is away; the report is kept and sent later: %s", path.stem, error)
            time.sleep(PAUSE_S)
    with contextlib.suppress(OSError):
        path.unlink()


def _keep(path: Path, signed: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    # It has scores on the secret test set.
    with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        json.dump(signed, file)
    part.replace(path)
