"""The back ends on which the faults are tried: what a site stores its data in, and the servers of that."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import psycopg2
import redis
from kombu import Connection

from evaluator.messages.jobs import EVALUATOR_QUEUE, INTAKE_QUEUE, SCORING_QUEUE
from evaluator.worker.broker import broker_settings
from tests.faults.proxy import FaultyProxy
from tests.services import rabbitmq
from tests.services.postgres import Postgres
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis
from tests.services.seaweedfs import ACCESS_KEY, SECRET_KEY, SeaweedFS

QUEUES = (EVALUATOR_QUEUE, SCORING_QUEUE, INTAKE_QUEUE)
UNFINISHED = "SELECT count(*) FROM submissions_run WHERE state IN ('queued', 'running')"


class Kind(StrEnum):
    """The back ends of a site."""

    EMBEDDED = "embedded"
    REDIS = "Redis"
    RABBITMQ = "RabbitMQ"

    @property
    def missing(self) -> str:
        """What this machine lacks for it; empty where it lacks nothing."""
        return "RabbitMQ is not installed" if self is Kind.RABBITMQ and rabbitmq.binary() is None else ""


SERVERS = (Kind.REDIS, Kind.RABBITMQ)


class BackEnds:
    """The servers of one site, with its S3 server behind a faulty proxy; use as a context manager.

    Attributes:
        variables: What a site's environment says of them.
        postgres, broker, s3: The servers; None where the site has none.
    """

    def __init__(self, kind: Kind, home: Path) -> None:
        self.kind = kind
        self.home = home
        self.variables: dict[str, str] = {}
        self.postgres: Postgres | None = None
        self.broker: Redis | RabbitMQ | None = None
        self.s3: SeaweedFS | None = None
        self.bucket = ""
        self.store_proxy = FaultyProxy()
        self._running = ExitStack()

    def __enter__(self) -> Self:
        if self.kind is not Kind.EMBEDDED:
            try:
                self._start()
            except BaseException:
                self._running.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def unfinished(self) -> int:
        """Return how many runs are queued or running."""
        if self.postgres is None:
            with sqlite3.connect(self.home / "db.sqlite3", timeout=60) as embedded:
                return int(embedded.execute(UNFINISHED).fetchone()[0])
        connection = psycopg2.connect(self.postgres.url)
        try:
            with connection.cursor() as cursor:
                cursor.execute(UNFINISHED)
                return int(cursor.fetchone()[0])
        finally:
            connection.close()

    @contextmanager
    def frozen_broker(self) -> Iterator[None]:
        """Let the broker accept connections, or its file be opened, and answer nothing within the block."""
        if self.broker is None:
            with sqlite3.connect(self.home / "broker.sqlite3", timeout=60, isolation_level=None) as embedded:
                embedded.execute("BEGIN EXCLUSIVE")
                yield
                embedded.execute("ROLLBACK")
            return
        self.broker.freeze()
        try:
            yield
        finally:
            self.broker.thaw()

    @contextmanager
    def broker_channel(self) -> Iterator[Any]:
        """Open a channel to the broker, as the site and its workers do."""
        url = self.broker.url if self.broker else f"sqlite:///{self.home}/broker.sqlite3"
        settings = broker_settings(url)
        with Connection(
            url,
            transport=settings.get("broker_transport"),
            transport_options=settings.get("broker_transport_options", {}),
        ) as connection:
            yield connection.default_channel

    def empty_broker(self) -> None:
        """Remove every message."""
        if self.kind is Kind.REDIS and self.broker:
            redis.Redis.from_url(self.broker.url).flushall()
            return
        with self.broker_channel() as channel:
            for name in QUEUES:
                channel.queue_purge(name)

    def _start(self) -> None:
        stop = self._running.callback
        self.postgres = Postgres(durable=True)
        stop(self.postgres.stop)
        self.broker = Redis(appendonly=True) if self.kind is Kind.REDIS else RabbitMQ()
        stop(self.broker.stop)
        self.s3 = SeaweedFS()
        stop(self.s3.stop)
        self.bucket = self.s3.create_bucket()
        self.store_proxy.upstream_port = int(self.s3.url.rpartition(":")[2])
        self._running.enter_context(self.store_proxy)
        self.variables = {
            "PFL_DATABASE_URL": self.postgres.url,
            "PFL_BROKER_URL": self.broker.url,
            "PFL_STORE_URL": f"s3://{self.bucket}",
            "PFL_STORE_ENDPOINT": self.store_proxy.url,
            "PFL_STORE_ACCESS_KEY": ACCESS_KEY,
            "PFL_STORE_SECRET_KEY": SECRET_KEY,
        }


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 300) -> None:
    """Return once the condition holds; `AssertionError` says what has not happened."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"after {timeout_s:.0f} s: {what}"
        time.sleep(0.1)
