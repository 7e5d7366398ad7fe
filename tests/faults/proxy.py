"""A proxy in front of an HTTP server, which can fail in the ways in which networks and servers do."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import Self

CHUNK_BYTES = 16 * 1024
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CONNECTION = re.compile(rb"\r\nconnection:[^\r]*", re.IGNORECASE)
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# As MinIO answers.
FULL = (
    b"HTTP/1.1 507 Insufficient Storage\r\nContent-Type: application/xml\r\nContent-Length: 45\r\n"
    b"Connection: close\r\n\r\n<Error><Code>XMinioStorageFull</Code></Error>"
)
WRITES = (b"PUT ", b"POST ")

# Called with "POST /path" when a request has been passed on.
OnRequest = Callable[[str], None]


class Fault(Enum):
    """How the server behind the proxy appears to fail."""

    NONE = auto()
    ERROR = auto()  # every request is answered with status 500
    REFUSING = auto()  # nobody listens
    SILENT = auto()  # connections are accepted, and nothing is answered
    FULL = auto()  # an S3 server that has no room: it answers what would write with status 507
    SLOW = auto()  # answers arrive at a few kilobytes a second


class FaultyProxy:
    """Passes HTTP requests on to `port` of this machine, one a connection; use as a context manager."""

    slow_bytes_per_s = 64 * 1024

    def __init__(self, port: int = 0) -> None:
        self.upstream_port = port
        self.on_request: OnRequest = lambda _request: None
        self._fault = Fault.NONE
        self._ended = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._close_listener()

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Let the server appear to fail within the block."""
        self._fault = fault
        if fault is Fault.REFUSING:
            self._close_listener()
        try:
            yield
        finally:
            self._fault = Fault.NONE
            if fault is Fault.REFUSING:
                self._listener = socket.create_server(("127.0.0.1", self.port))
                self._listen()

    def _listen(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _close_listener(self) -> None:
        # A thread that waits in accept() keeps a socket open that is only closed.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            head, body = _read_head(client)
            if not head:
                return
            while self._fault is Fault.SILENT and not self._ended:
                time.sleep(0.1)
            answer = self._failing_answer(head)
            if answer:
                _read_body(client, head, body)
                client.sendall(answer)
                return
            with socket.create_connection(("127.0.0.1", self.upstream_port)) as server:
                server.sendall(CONNECTION.sub(b"", head)[:-2] + b"Connection: close\r\n\r\n" + body)
                self.on_request(" ".join(head.decode("latin-1").split(" ", 2)[:2]))
                threading.Thread(target=_pass_on, args=(client, server), daemon=True).start()
                try:
                    self._answer(server, client)
                finally:
                    # The other thread waits for more of the request, and keeps open what is only closed.
                    client.shutdown(socket.SHUT_RDWR)

    def _failing_answer(self, head: bytes) -> bytes:
        """Return what the request is answered with at once, or nothing if it is passed on."""
        if self._fault is Fault.ERROR:
            return ERROR
        return FULL if self._fault is Fault.FULL and head.startswith(WRITES) else b""

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        while chunk := server.recv(CHUNK_BYTES):
            if self._fault is Fault.SLOW:
                time.sleep(len(chunk) / self.slow_bytes_per_s)
            client.sendall(chunk)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request with its last empty line, and what of the body has come with it."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = client.recv(CHUNK_BYTES)
        if not chunk:
            return b"", b""
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body


def _read_body(client: socket.socket, head: bytes, body: bytes) -> None:
    """Receive the rest, since a client that can't send it never looks at the answer."""
    announced = CONTENT_LENGTH.search(head)
    left = int(announced[1]) - len(body) if announced else 0
    while left > 0 and (chunk := client.recv(CHUNK_BYTES)):
        left -= len(chunk)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(CHUNK_BYTES):
            target.sendall(chunk)
        # Not closed: the answer is still on its way.
        target.shutdown(socket.SHUT_WR)
