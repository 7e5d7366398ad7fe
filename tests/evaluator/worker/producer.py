"""A program that sends tasks: the URL of the broker and its own name are its arguments."""

import sys

from celery import Celery

from evaluator.worker.broker import broker_settings

TASKS = 50


def main() -> None:
    _, url, name = sys.argv
    app = Celery("producer")
    app.conf.update(broker_settings(url))
    for number in range(TASKS):
        app.send_task("probe.note", [f"{name}-{number}"], queue="probe")
