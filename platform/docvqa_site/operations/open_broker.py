"""Whether the broker lets in somebody without a password: such a visitor could read every job and sign any report."""

from urllib.parse import urlsplit, urlunsplit

import amqp
from amqp import sasl

GUEST = "guest"
PORTS = {"amqp": 5672, "amqps": 5671}


class Anonymous(sasl.SASL):
    """Logging in as nobody, which RabbitMQ takes for the account `guest`."""

    mechanism = b"ANONYMOUS"

    def start(self, connection: object) -> bytes:
        """Return the only answer to the server's question: none."""
        return b""


def lets_anyone_in(url: str, timeout_s: float) -> bool:
    """Return whether the broker at a URL accepts a connection without credentials, or with RabbitMQ's published ones.

    The embedded broker is a file, which has no connections. Raises what the broker's client raises if it is away.
    """
    match urlsplit(url).scheme:
        case "redis" | "rediss":
            return _redis_lets_in(url, timeout_s)
        case "amqp" | "amqps":
            return any(_rabbitmq_lets_in(url, login, timeout_s) for login in _logins(url))
        case _:
            return False


def _redis_lets_in(url: str, timeout_s: float) -> bool:
    # Its import loads a library for traces, which a site without an address for them leaves out.
    import redis

    parts = urlsplit(url)
    anonymous = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    try:
        with redis.Redis.from_url(
            anonymous, socket_timeout=timeout_s, socket_connect_timeout=timeout_s
        ) as client:
            return bool(client.ping())
    except (redis.AuthenticationError, redis.ResponseError):
        return False


def _logins(url: str) -> list[sasl.SASL]:
    # A site that uses the published account itself is on its own machine: RabbitMQ lets this one in from nowhere else.
    published = [] if urlsplit(url).username in {GUEST, None} else [sasl.PLAIN(GUEST, GUEST)]
    return [Anonymous(), *published]


def _rabbitmq_lets_in(url: str, login: sasl.SASL, timeout_s: float) -> bool:
    parts = urlsplit(url)
    connection = amqp.Connection(
        f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}",
        authentication=(login,),
        virtual_host=parts.path[1:] or "/",
        ssl=parts.scheme == "amqps",
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
    )
    try:
        connection.connect()
    except (amqp.AccessRefused, amqp.NotAllowed, amqp.RecoverableConnectionError, amqp.ConnectionError):
        return False
    connection.close()
    return True
