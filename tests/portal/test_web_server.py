"""How gunicorn serves the site: a visitor with a slow connection holds up nobody, and is not cut off."""

import socket
import time
from urllib.parse import urlsplit

import pytest
import requests
from django.test import override_settings

from portal.uploads.signed_urls import file_path
from tests.demo.stack import Stack

# More than the buffers of both ends of a connection hold.
SIZE = 40 * 2**20
TIME_LIMIT_S = 4


@pytest.fixture
def stack(tmp_path):
    """The site's web process alone, by the configuration of a public site, with a shorter time limit."""
    stack = Stack(tmp_path / "site", variables={"GUNICORN_CMD_ARGS": f"--timeout {TIME_LIMIT_S}"})
    (stack.home / "logs").mkdir(parents=True)
    stack.start_process("web")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        stack.check()
        try:
            if requests.get(f"{stack.url}/healthz", timeout=5).ok:
                break
        except requests.RequestException:
            time.sleep(0.1)
    yield stack
    stack.stop()


def address_of_a_file(stack):
    path = stack.home / "store" / "objects" / "ab" / "abc"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(SIZE)
    with override_settings(SECRET_KEY=(stack.home / "secret_key").read_text()):
        return file_path("ab/abc", "model.safetensors", 600)


def received(connection):
    """The length of the body, after the head of the response; closed at its end, as a proxy does."""
    count, head = 0, b""
    while chunk := connection.recv(2**20):
        if b"\r\n\r\n" not in head:
            head += chunk
            chunk = head.partition(b"\r\n\r\n")[2] if b"\r\n\r\n" in head else b""
        count += len(chunk)
    connection.close()
    return count


def test_slow_downloads_longer_than_the_time_limit_hold_up_nobody(stack):
    path = address_of_a_file(stack)
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    address = urlsplit(stack.url)
    connections = [socket.create_connection((address.hostname, address.port)) for _ in range(4)]
    for connection in connections:
        connection.sendall(request)
    end = time.monotonic() + 1.5 * TIME_LIMIT_S
    while time.monotonic() < end:
        # Nobody reads the files meanwhile.
        assert requests.get(f"{stack.url}/healthz", timeout=20).ok
        time.sleep(0.1)
    assert [received(connection) for connection in connections] == [SIZE] * 4
    assert "TIMEOUT" not in stack.log_path("web").read_text()
