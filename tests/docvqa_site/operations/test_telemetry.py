"""Errors and traces leave the site only where an address is named, and without what visitors sent."""

import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SITE = {"DJANGO_SETTINGS_MODULE": "docvqa_site.settings", "PFL_ALLOWED_HOSTS": "testserver"}
PAGE = """
import django, sys
django.setup()
from django.test import Client
for path in ("/nowhere", "/uploads/files/secret"):
    Client(raise_request_exception=False).get(path)
import logging
try:
    password = "secret"
    raise RuntimeError("a bug")
except RuntimeError:
    logging.getLogger("docvqa_site").exception("it failed")
print("loaded:", *(name for name in ("sentry_sdk", "opentelemetry.sdk") if name in sys.modules))
if "sentry_sdk" in sys.modules:
    sys.modules["sentry_sdk"].flush(10)
if "opentelemetry.sdk" in sys.modules:
    from opentelemetry import trace
    trace.get_tracer_provider().force_flush(10_000)
"""


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent: path and body."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = zlib.decompress(body, 31)
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def serve_a_page(**environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", PAGE],
        env={**os.environ, **SITE, **environment},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


def test_without_an_address_nothing_is_loaded() -> None:
    assert serve_a_page() == "loaded:"


def test_errors_and_traces_go_where_the_addresses_say(collector: Collector) -> None:
    address = f"127.0.0.1:{collector.server_port}"
    loaded = serve_a_page(
        PFL_SENTRY_DSN=f"http://key@{address}/1", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{address}"
    )
    assert loaded == "loaded: sentry_sdk opentelemetry.sdk"
    bodies = dict(collector.received)
    (event,) = (body for path, body in bodies.items() if "envelope" in path)
    assert b"a bug" in event
    assert b"secret" not in event
    assert json.loads(event.splitlines()[-1])["logger"] == "docvqa_site"
    assert b"nowhere" in bodies["/v1/traces"]
    assert b"secret" not in bodies["/v1/traces"]


def test_an_address_without_the_package_is_reported_with_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from django.core.exceptions import ImproperlyConfigured

    from docvqa_site.operations import telemetry

    monkeypatch.setenv("PFL_SENTRY_DSN", "http://key@127.0.0.1/1")
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with pytest.raises(ImproperlyConfigured, match=r"pip install 'pfl-docvqa-site\[sentry\]'"):
        telemetry.start_telemetry()
