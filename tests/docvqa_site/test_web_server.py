"""How gunicorn serves the site: a visitor with a slow connection holds up nobody, and is not cut off."""

import io
import json
import os
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

import pytest
import requests
from django.test import override_settings
from gunicorn.http.unreader import SocketUnreader

from docvqa_site import web_server
from docvqa_site.in_flight import LimitedPerNetwork
from docvqa_site.uploads.signed_urls import file_path
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


LOADED = """
import gc, sys
from docvqa_site import web_server, wsgi
web_server.post_worker_init(None)
gc.collect()
print("docvqa_site.urls" in sys.modules, gc.get_freeze_count() > 10 * len(gc.get_objects()))
"""


def test_garbage_collections_of_a_request_leave_out_what_the_process_has_loaded():
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "docvqa_site.settings"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True"]


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


@pytest.fixture
def connected(monkeypatch):
    """What receives a request, and the client's end of its connection; both wait for a moment only."""
    monkeypatch.setattr(web_server, "SILENCE_S", 0.1)
    monkeypatch.setattr(web_server, "PATIENCE_S", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield SocketUnreader(ours), theirs


def test_a_client_that_sends_nothing_loses_its_connection(connected):
    unreader, client = connected
    client.sendall(b"GET")
    assert unreader.chunk() == b"GET"
    with pytest.raises(TimeoutError, match="sent nothing"):
        unreader.chunk()


def test_a_client_that_sends_a_byte_now_and_then_loses_its_connection_and_a_fast_one_does_not(connected):
    unreader, client = connected
    unreader.received_bytes, unreader.waited_s = web_server.LEAST_BYTES_PER_S * 10, 5.0
    client.sendall(b"x")
    assert unreader.chunk() == b"x"
    unreader.received_bytes = 100
    client.sendall(b"x")
    with pytest.raises(TimeoutError, match="101 bytes"):
        unreader.chunk()


class TestOneNetwork:
    """Requests of one network at a time: see `LimitedPerNetwork`."""

    def ask(self, application, address, path="/"):
        statuses = []
        environ = {"REMOTE_ADDR": address, "wsgi.input": io.BytesIO(), "PATH_INFO": path}
        setup_testing_defaults(environ)
        response = application(environ, lambda status, headers: statuses.append(status[:3]))
        return statuses[0], response

    def test_holds_its_share_of_the_threads_and_others_are_served(self):
        def application(environ, start_response):
            start_response("200 OK", [])
            return io.BytesIO(b"content")

        limited = LimitedPerNetwork(application, most=2)
        held = [self.ask(limited, "203.0.113.7") for _ in range(3)]
        assert [status for status, _ in held] == ["200", "200", "429"]
        status, (answer,) = self.ask(limited, "203.0.113.7", "/api/v1/me")
        assert (status, json.loads(answer)["problems"][0]["code"]) == ("429", "E_REQUEST_LIMIT")
        assert self.ask(limited, "203.0.113.8")[0] == "200"
        held[0][1].close()
        assert self.ask(limited, "203.0.113.7")[0] == "200"

    def test_gets_its_place_back_after_an_error(self):
        def application(environ, start_response):
            raise LookupError

        limited = LimitedPerNetwork(application, most=1)
        for _ in range(2):
            with pytest.raises(LookupError):
                self.ask(limited, "203.0.113.7")

    def test_sends_paths_of_any_letters_on_as_they_came(self):
        seen = []

        def application(environ, start_response):
            seen.append(environ["PATH_INFO"])
            start_response("200 OK", [])
            return io.BytesIO()

        limited = LimitedPerNetwork(application, most=1)
        # A server gives the bytes of UTF-8 as characters of Latin-1.
        path = "/tracks/ü".encode().decode("latin-1")
        self.ask(limited, "203.0.113.7", path)
        assert seen == [path]
