"""The worker's Celery app with short patience, and places where it stops; run by test_delivery.py."""

import os
import sys
import time
from pathlib import Path

from celery.signals import task_prerun

from evaluator.worker import inventory
from evaluator.worker.broker import is_rabbitmq, is_redis
from evaluator.worker.celery import _url, app
from evaluator.worker.heartbeat import Heartbeat

# Shorter than the steps of the tests.
VISIBILITY_S = 3
inventory.RETRY_S = 0.2
if is_redis(_url):
    app.conf.broker_transport_options |= {
        "visibility_timeout": VISIBILITY_S,
        "unacked_mutex_expire": 2,
    }
elif not is_rabbitmq(_url):
    app.conf.broker_transport_options |= {"lease_s": VISIBILITY_S, "polling_interval": 0.05}


@task_prerun.connect(weak=False)
def _say_what_is_loaded(**_: object) -> None:
    # Past Celery, which takes the streams over.
    os.write(2, f"the site is loaded: {'docvqa_site.settings' in sys.modules}\n".encode())


def _never_begin(self: Heartbeat) -> None:
    Path(os.environ["STOPS_BEFORE_BEGINNING"]).touch()
    time.sleep(3600)


if "STOPS_BEFORE_BEGINNING" in os.environ:
    Heartbeat.announce = _never_begin  # type: ignore[method-assign]
