"""The message broker: Celery settings for each kind, and the embedded one, a single SQLite file.

The embedded broker is a Celery (kombu) transport for installations without a broker daemon. It delivers at
least once: a message that is handed out is leased, not removed. Acknowledging deletes it; rejecting gives it
back; a process renews its leases from a thread while it lives, and what a killed process held is handed out
again when the lease runs out. Messages of a queue come in the order in which they were sent, and one that is
given back stays at its position. Every hand-over is counted in the message header `deliveries`, so that a consumer
can reject a message that keeps killing it.

All processes must see the file on one local disk: SQLite's write-ahead log doesn't work over a network.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from kombu import Queue
from kombu.transport import virtual
from kombu.utils.json import dumps, loads

from evaluator.messages.jobs import EVALUATOR_QUEUE, SCORING_QUEUE

logger = logging.getLogger(__name__)

LEASE_S = 10.0
POLLING_INTERVAL_S = 0.05
BUSY_TIMEOUT_S = 30.0
# A message is acknowledged when its step begins, not when it ends: what isn't by then, its consumer lost. The longest
# wait before is for a broker that comes back while a worker reports that it begins.
VISIBILITY_S = 300
# A broker that keeps silent for so long is away: whoever waits for it does something else, and tries again.
SILENCE_S = 5.0

DELIVERIES_HEADER = "deliveries"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    payload TEXT NOT NULL,
    deliveries INTEGER NOT NULL DEFAULT 0,
    lease TEXT UNIQUE,
    lease_until REAL NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS messages_by_queue ON messages (queue, id);
"""


def broker_settings(url: str) -> dict[str, Any]:
    """Return the Celery settings under which no message is lost on the broker at `url`.

    Both ends use them: the site's Celery app and the workers'. Messages are JSON, acknowledged when the task
    is done or says so, and given back when its process dies; a consumer takes one at a time; no results are stored.
    Nobody can be controlled through the broker.

    Args:
        url: `sqlite:////absolute/path`, `redis://…`, `rediss://…`, `amqp://…` or `amqps://…`.

    Raises:
        ValueError: The scheme is another one, or the path of a SQLite file is not absolute.
    """
    common: dict[str, Any] = {
        "broker_url": url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,
        "broker_connection_timeout": SILENCE_S,
        # A process that works answers no heartbeats. TCP notices the end of a peer.
        "broker_heartbeat": 0,
        "accept_content": ["json"],
        "task_serializer": "json",
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        # Whoever has a visitor waiting can't wait for the broker; the watchdog sends a step again.
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.2},
        "worker_prefetch_multiplier": 1,
        "worker_consumer": "evaluator.worker.consuming:Consumer",
        # Whoever can write to the broker could end or inspect every process that listens.
        "worker_enable_remote_control": False,
    }
    match urlsplit(url).scheme:
        case "sqlite":
            broker_path(url)
            return common | {"broker_transport": "evaluator.worker.broker:Transport"}
        case "redis" | "rediss":
            return common | {"broker_transport_options": _redis_options()}
        case "amqp" | "amqps":
            return common | {
                "broker_transport_options": {
                    "confirm_publish": True,
                    "read_timeout": SILENCE_S,
                    "write_timeout": SILENCE_S,
                },
                "task_default_queue_type": "quorum",
                "task_create_missing_queue_type": "quorum",
                "worker_detect_quorum_queues": True,
            }
        case scheme:
            raise ValueError(f"The broker's scheme must be sqlite, redis(s) or amqp(s), not {scheme!r}.")


def _redis_options() -> dict[str, Any]:
    return {
        "visibility_timeout": VISIBILITY_S,
        # A worker looks for lost messages whenever it is free.
        "unacked_restore_throttle": 1,
        # Who is killed while looking for lost messages keeps others from it for so long.
        "unacked_mutex_expire": 30,
        "socket_timeout": SILENCE_S,
        "socket_connect_timeout": SILENCE_S,
        "socket_keepalive": True,
        # One key for each queue, which an account's permissions can name.
        "priority_steps": [0],
    }


def worker_settings(url: str) -> dict[str, Any]:
    """Return the settings of a worker, whose account at the broker may do nothing but its work.

    It declares no queue: the site does. On Redis it has keys of its own for the messages that it holds.

    Raises `ValueError` as `broker_settings`.
    """
    settings = broker_settings(url)
    queues = [Queue(name, no_declare=True) for name in (EVALUATOR_QUEUE, SCORING_QUEUE)]
    if is_redis(url):
        settings["broker_transport_options"] |= {
            f"{key}_key": f"{EVALUATOR_QUEUE}.{key}" for key in ("unacked", "unacked_index", "unacked_mutex")
        }
    return settings | {"task_queues": queues, "task_default_queue": EVALUATOR_QUEUE}


def is_redis(url: str) -> bool:
    """Return whether the broker is a Redis server."""
    return urlsplit(url).scheme in {"redis", "rediss"}


def is_rabbitmq(url: str) -> bool:
    """Return whether the broker is a RabbitMQ server."""
    return urlsplit(url).scheme in {"amqp", "amqps"}


def broker_path(url: str) -> Path:
    """Return the file that `sqlite:////absolute/path` names. Raises `ValueError` unless the path is absolute."""
    path = unquote(urlsplit(url).path)
    if not path.startswith("//"):
        raise ValueError("The broker's path must be absolute: sqlite:////var/lib/pfl/broker.sqlite3")
    return Path(path[1:])


def delivery_number(headers: Mapping[str, object], *, redelivered: bool = False) -> int:
    """Return which hand-over of its message this is, from 1 on; at most 2 where the broker doesn't count (Redis)."""
    counted, rabbitmq = headers.get(DELIVERIES_HEADER), headers.get("x-delivery-count")
    if isinstance(counted, int):
        return counted
    if isinstance(rabbitmq, int):
        return rabbitmq + 1
    return 2 if redelivered else 1


@dataclass(frozen=True)
class Delivery:
    """One hand-over of a message. `lease` names it: a later hand-over of the same message has another one."""

    lease: str
    deliveries: int
    payload: str


class MessageFile:
    """Queues in one SQLite file, shared by any number of processes and threads.

    Args:
        path: The file; it and its folder are created.
        lease_s: Seconds after which a message held by a dead process is handed out again.
    """

    def __init__(self, path: Path, lease_s: float = LEASE_S) -> None:
        self.path = path
        self.lease_s = lease_s
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._held: set[str] = set()
        self._closing = threading.Event()
        self._renewer: threading.Thread | None = None

    def put(self, queue: str, payload: str) -> None:
        """Append a message to `queue`."""
        self._execute(
            "INSERT INTO messages (queue, payload) VALUES (:queue, :payload)", queue=queue, payload=payload
        )

    def take(self, queue: str) -> Delivery | None:
        """Lease the oldest free message of `queue`; None if there is none."""
        with self._lock:
            now = time.time()
            # Most polls find nothing, so look before asking for the write lock; another process may be faster.
            while free := self._execute(
                "SELECT id FROM messages WHERE queue = :queue AND lease_until <= :now ORDER BY id LIMIT 1",
                queue=queue,
                now=now,
            ):
                lease = uuid4().hex
                taken = self._execute(
                    "UPDATE messages SET lease = :lease, lease_until = :until, deliveries = deliveries + 1"
                    " WHERE id = :id AND lease_until <= :now RETURNING deliveries, payload",
                    lease=lease,
                    until=now + self.lease_s,
                    id=free[0][0],
                    now=now,
                )
                if taken:
                    self._hold(lease)
                    ((deliveries, payload),) = taken
                    return Delivery(lease, deliveries, payload)
        return None

    def delete(self, lease: str) -> None:
        """Remove a message that was dealt with, unless it has meanwhile been handed out again."""
        self._drop(lease)
        self._execute("DELETE FROM messages WHERE lease = :lease", lease=lease)

    def give_back(self, lease: str, *, untouched: bool = False) -> None:
        """Free a message for others. If it is `untouched`, this hand-over isn't counted."""
        self._drop(lease)
        self._execute(
            "UPDATE messages SET lease = NULL, lease_until = 0, deliveries = deliveries - :uncounted"
            " WHERE lease = :lease",
            uncounted=int(untouched),
            lease=lease,
        )

    def size(self, queue: str) -> int:
        """Return the number of messages of `queue` that are free to be taken."""
        rows = self._execute(
            "SELECT count(*) FROM messages WHERE queue = :queue AND lease_until <= :now",
            queue=queue,
            now=time.time(),
        )
        return int(rows[0][0])

    def purge(self, queue: str) -> int:
        """Remove the free messages of `queue`; return how many there were."""
        return len(
            self._execute(
                "DELETE FROM messages WHERE queue = :queue AND lease_until <= :now RETURNING id",
                queue=queue,
                now=time.time(),
            )
        )

    def close(self) -> None:
        """Close the file and stop renewing; what is still leased becomes free when its lease runs out."""
        with self._lock:
            self._closing.set()
            self._renewer = None
            self._held.clear()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _execute(self, statement: str, **values: object) -> list[Any]:
        # Neither the connection nor the leases may be used across a fork.
        if self._pid != os.getpid():
            self._reset()
        # Each statement is a transaction of its own. Fetching all rows runs it to its end, which commits.
        with self._lock:
            return self._open().execute(statement, values).fetchall()

    def _open(self) -> sqlite3.Connection:
        # A file that was removed or replaced still takes messages, which nobody would ever read.
        if self._connection is not None and self._file != _identity(self.path):
            logger.warning("The broker's file %s was removed or replaced; it is opened again.", self.path)
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            _switch_to_wal(connection)
            connection.executescript(_SCHEMA)
            self._connection = connection
            self._file = _identity(self.path)
        return self._connection

    def _hold(self, lease: str) -> None:
        self._held.add(lease)
        if self._renewer is None:
            self._closing = threading.Event()
            self._renewer = threading.Thread(
                target=self._renew, args=(self._closing,), name="broker-leases", daemon=True
            )
            self._renewer.start()

    def _drop(self, lease: str) -> None:
        with self._lock:
            self._held.discard(lease)

    def _renew(self, closing: threading.Event) -> None:
        while not closing.wait(self.lease_s / 3):
            with self._lock:
                try:
                    for lease in self._held:
                        self._execute(
                            "UPDATE messages SET lease_until = :until WHERE lease = :lease",
                            until=time.time() + self.lease_s,
                            lease=lease,
                        )
                except sqlite3.OperationalError as error:
                    # The disk may be full, for example: the next attempt may succeed.
                    logger.warning("Leases could not be renewed: %s", error)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file at `path`; None if there is no such file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode, which SQLite rejects, without waiting, while others open the same new file."""
    give_up = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


class QoS(virtual.QoS):
    """The unacknowledged messages of a channel."""

    channel: "Channel"

    def ack(self, delivery_tag: str) -> None:
        self.channel.messages.delete(delivery_tag)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if requeue:
            self.channel.messages.give_back(delivery_tag)
        else:
            self.channel.messages.delete(delivery_tag)
        super().ack(delivery_tag)


class Channel(virtual.Channel):
    """A kombu channel over a `MessageFile`; a message's lease is its delivery tag."""

    QoS = QoS
    connection: "Transport"

    @property
    def messages(self) -> MessageFile:
        return self.connection.messages

    def basic_consume(
        self,
        queue: str,
        no_ack: bool = False,
        callback: Callable[..., Any] | None = None,
        consumer_tag: str | None = None,
        **kwargs: Any,
    ) -> str:
        def acknowledge_first(message: Any) -> Any:
            message.ack()
            return callback(message) if callback else None

        consume = acknowledge_first if no_ack else callback
        return super().basic_consume(queue, False, consume, consumer_tag, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, False, **kwargs)
        if message is not None and no_ack:
            message.ack()
        return message

    def _put(self, queue: str, message: dict[str, Any], **_: object) -> None:
        self.messages.put(queue, dumps(message))

    def _get(self, queue: str, _timeout: float | None = None) -> dict[str, Any]:
        delivery = self.messages.take(queue)
        if delivery is None:
            raise Empty
        message: dict[str, Any] = loads(delivery.payload)
        message["headers"][DELIVERIES_HEADER] = delivery.deliveries
        message["properties"]["delivery_tag"] = delivery.lease
        message["properties"]["delivery_info"]["redelivered"] = delivery.deliveries > 1
        return message

    def _restore(self, message: Any) -> None:
        """Give back, at shutdown, a message that was fetched ahead."""
        self.messages.give_back(message.delivery_tag, untouched=True)

    def _purge(self, queue: str) -> int:
        return self.messages.purge(queue)

    def _size(self, queue: str) -> int:
        return self.messages.size(queue)


class Transport(virtual.Transport):
    """The kombu transport for `sqlite:////absolute/path`.

    Transport options: `lease_s` and `polling_interval`, both in seconds.
    """

    Channel = Channel
    # kombu passes the URL on as it is.
    can_parse_url = True
    driver_type = "sqlite"
    driver_name = "sqlite3"
    polling_interval = POLLING_INTERVAL_S
    connection_errors = (*virtual.Transport.connection_errors, sqlite3.OperationalError)

    def __init__(self, client: Any, **kwargs: object) -> None:
        super().__init__(client, **kwargs)
        lease_s = client.transport_options.get("lease_s", LEASE_S)
        self.messages = MessageFile(broker_path(client.hostname), lease_s)

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        self.messages.close()

    @property
    def default_connection_params(self) -> dict[str, Any]:
        # A file has no host, and kombu warns where one is missing but has a default.
        return {}

    def driver_version(self) -> str:
        return sqlite3.sqlite_version
