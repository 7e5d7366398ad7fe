"""A broker that neither answers nor closes its connections, as behind a firewall that drops everything."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from evaluator.worker.broker import SILENCE_S, broker_settings
from tests.evaluator.worker.brokers import Broker, Brokers


@contextmanager
def frozen(broker: Broker) -> Iterator[None]:
    assert broker.server is not None
    group = os.getpgid(broker.server.process.pid)
    os.killpg(group, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


@pytest.mark.parametrize(
    ("kind", "is_connected"),
    [
        pytest.param("redis", True, id="connected-redis"),
        pytest.param("rabbitmq", False, id="new-rabbitmq", marks=pytest.mark.slow),
        pytest.param("redis", False, id="new-redis", marks=pytest.mark.slow),
        pytest.param("rabbitmq", True, id="connected-rabbitmq", marks=pytest.mark.slow),
    ],
)
def test_whoever_sends_is_not_kept_waiting(brokers: Brokers, kind: str, is_connected: bool) -> None:
    broker = brokers.get(kind)
    app = Celery("site")
    app.conf.update(broker_settings(broker.url))
    if is_connected:
        app.send_task("nothing", queue="frozen")
    with frozen(broker):
        began = time.monotonic()
        with pytest.raises(OperationalError):
            app.send_task("nothing", queue="frozen")
        took_s = time.monotonic() - began
    # Two tries, each of which waits for a connection and for an answer.
    assert took_s < 4 * SILENCE_S + 5
    app.send_task("nothing", queue="frozen")
    app.close()
