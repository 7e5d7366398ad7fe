"""Requests whose bodies never end: one for each connection, or all of them over a single HTTP/2 connection."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

PATH = "/account/login/"
ANNOUNCED_BYTES = 100_000
# Frames of HTTP/2, RFC 9113.
DATA, HEADERS, SETTINGS = 0x0, 0x1, 0x4
END_HEADERS = 0x4


class SlowBodies(Protocol):
    def drip(self) -> None:
        """Send one more byte of every body. Raises `OSError` if the proxy has had enough."""


class Connections:
    """A TLS connection for each body."""

    def __init__(self, connections: list[ssl.SSLSocket]) -> None:
        self._connections = connections

    def drip(self) -> None:
        for connection in self._connections:
            connection.sendall(b"x")


class Streams:
    """A stream of one HTTP/2 connection for each body."""

    def __init__(self, connection: ssl.SSLSocket, authority: str, number: int) -> None:
        self._connection, self._streams = connection, range(1, 2 * number, 2)
        fields = {
            ":method": "POST",
            ":scheme": "https",
            ":path": PATH,
            ":authority": authority,
            "content-length": str(ANNOUNCED_BYTES),
        }
        block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(SETTINGS, 0, 0, b""))
        connection.sendall(b"".join(_frame(HEADERS, END_HEADERS, stream, block) for stream in self._streams))

    def drip(self) -> None:
        self._connection.sendall(b"".join(_frame(DATA, 0, stream, b"x") for stream in self._streams))


@contextmanager
def slow_connections(host: str, port: int, number: int) -> Iterator[SlowBodies]:
    """So many connections to the proxy at this port of the loopback interface, each with a request."""
    head = f"POST {PATH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {ANNOUNCED_BYTES}\r\n\r\n"
    with ExitStack() as stack:
        connections = []
        for _ in range(number):
            connections.append(stack.enter_context(_connection(host, port, "http/1.1")))
            # At once: the proxy waits for a head no longer than ten seconds.
            connections[-1].sendall(head.encode())
        yield Connections(connections)


@contextmanager
def slow_streams(host: str, port: int, number: int) -> Iterator[SlowBodies]:
    """One HTTP/2 connection with so many requests."""
    with _connection(host, port, "h2") as connection:
        yield Streams(connection, f"{host}:{port}", number)


def _connection(host: str, port: int, protocol: str) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection = context.wrap_socket(plain, server_hostname=host)
    assert connection.selected_alpn_protocol() == protocol
    return connection


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _text(text: str) -> bytes:
    """A text of less than 127 bytes as HPACK has it, not compressed."""
    return bytes([len(text)]) + text.encode()
