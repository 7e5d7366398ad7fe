"""The mail process: it delivers what waits in the outbox, and needs nothing but the database and the mail server."""

import logging
import signal
import threading
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import Error, close_old_connections
from typing_extensions import override

from docvqa_site.liveness.models import Process, show_life
from docvqa_site.mail.delivery import MailServerError, deliver_due

POLL_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Deliver queued emails until SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="Deliver all due emails and exit.")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            deliver_due()
            return
        Mailer().run()


class Mailer:
    """Delivers mails until a signal stops it. While the mail server or the database is away, it waits."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._shown_at = float("-inf")
        self._pause = POLL_SECONDS
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: self._stop.set())

    def run(self) -> None:
        """Deliver until SIGTERM or SIGINT; the mail on its way is finished first."""
        while not self._stop.is_set():
            close_old_connections()
            try:
                self._pass()
            except Error:
                logger.exception("The outbox can't be read.")
                self._stop.wait(POLL_SECONDS)

    def _pass(self) -> None:
        self._show_life()
        try:
            tried = deliver_due()
        except MailServerError as error:
            logger.error("The email server can't be reached: %s", error)
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS / 2)
            self._stop.wait(self._pause)
            return
        self._pause = POLL_SECONDS
        if not tried:
            self._stop.wait(POLL_SECONDS)

    def _show_life(self) -> None:
        if time.monotonic() - self._shown_at >= settings.LIVENESS_SECONDS:
            show_life(Process.MAIL)
            self._shown_at = time.monotonic()
