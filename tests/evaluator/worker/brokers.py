"""The brokers on which the tests of the worker run: each kind that production may use, for real."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services import rabbitmq
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis

BROKERS = ["embedded", "redis", "rabbitmq"]


def kinds(often: str) -> list[Any]:
    """Return each kind of broker as a parameter; `make test` has time for the one named."""
    return [kind if kind == often else pytest.param(kind, marks=pytest.mark.slow) for kind in BROKERS]


class Broker:
    """A running broker of one kind, and its URL.

    RabbitMQ suggests a heartbeat of 5 s and closes a connection that doesn't acknowledge within as much.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.server: Redis | RabbitMQ | None = None
        if kind == "redis":
            self.server = Redis()
        elif kind == "rabbitmq":
            if rabbitmq.binary() is None:
                pytest.skip("no RabbitMQ server: `python -m tests.install` installs one as root on Debian")
            self.server = RabbitMQ(heartbeat_s=5, consumer_timeout_s=5)
        self.url = self.server.url if self.server else f"sqlite:///{folder}/broker.sqlite3"

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop()


class Brokers:
    """Every kind of broker, started when a test needs it first, for all tests of a run."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self.new_folder = new_folder
        self.running: dict[str, Broker] = {}

    def get(self, kind: str) -> Broker:
        if kind not in self.running:
            self.running[kind] = Broker(kind, self.new_folder(kind))
        return self.running[kind]

    def stop(self) -> None:
        for broker in self.running.values():
            broker.stop()
