"""The mail process beside a mail server that hangs: the rest of the site doesn't notice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from django.core.mail import send_mail
from django.db import connection
from pytest_django import Settings

from docvqa_site.liveness.models import Process, silences
from docvqa_site.mail.models import OutgoingMail
from tests.services.mail import HangingMailServer, MailServer

pytestmark = pytest.mark.django_db(transaction=True)


def start_mailer(port: int) -> subprocess.Popen[bytes]:
    database = connection.settings_dict
    url = f"postgres://{database['USER']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return subprocess.Popen(
        [sys.executable, "-m", "django", "deliver_mail"],
        env={**os.environ, "PFL_DATABASE_URL": url, "PFL_SMTP_URL": f"smtp+plain://127.0.0.1:{port}"},
    )


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_delivers_waits_out_a_server_that_hangs_and_ends_on_sigterm(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "docvqa_site.mail.backend.OutboxBackend"
    with HangingMailServer() as hanging:
        begun = time.monotonic()
        send_mail("Hello", "text", "site@example.org", ["ada@example.org"])
        assert time.monotonic() - begun < 5
        mailer = start_mailer(hanging.port)
        wait_until(lambda: silences()[Process.MAIL] is not None)
        assert OutgoingMail.objects.get().attempts == 0
    try:
        with MailServer() as server:
            working = start_mailer(server.port)
            wait_until(lambda: bool(server.received))
            working.send_signal(signal.SIGTERM)
            assert working.wait(30) == 0
    finally:
        mailer.terminate()
        assert mailer.wait(60) == 0
    assert OutgoingMail.objects.get().delivered_at is not None
