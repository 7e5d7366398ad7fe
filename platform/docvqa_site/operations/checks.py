"""What the site needs to work, each as a check that answers within seconds, also if what it asks hangs."""

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import Error, connection
from kombu import Connection

from docvqa_site.evaluation import clock
from docvqa_site.liveness.models import Process, silences
from docvqa_site.operations.open_broker import lets_anyone_in
from docvqa_site.operations.schema import SchemaError, different_columns, missing_migrations
from docvqa_site.uploads.stores import current_store

OK = "ok"
NO_ANSWER = "doesn't answer"
TIMEOUT_S = 3
# Signed addresses are valid for minutes: machines whose clocks differ by more reject each other's.
MOST_DIFFERENCE_S = 30

logger = logging.getLogger(__name__)

Check = Callable[[], str]


class BoundedCheck:
    """A check of something that may hang, made in a thread that is given up after `TIMEOUT_S`.

    While an earlier check still hangs no other is started, so that probes never pile up.
    """

    def __init__(self, subject: str, check: Check) -> None:
        self._subject = subject
        self._check = check
        self._running: threading.Thread | None = None
        self._lock = threading.Lock()

    def __call__(self) -> str:
        outcome: list[str] = []
        with self._lock:
            if self._running is not None and self._running.is_alive():
                return NO_ANSWER
            thread = threading.Thread(target=self._run, args=(outcome,), daemon=True)
            self._running = thread
            thread.start()
        thread.join(TIMEOUT_S)
        return outcome[0] if outcome else NO_ANSWER

    def _run(self, outcome: list[str]) -> None:
        try:
            outcome.append(self._check())
        except Exception:  # every client library has errors of its own
            logger.exception("The %s doesn't answer.", self._subject)
            outcome.append(NO_ANSWER)


def check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        logger.exception("The database doesn't answer.")
        return NO_ANSWER
    return OK


def check_time() -> str:
    """Return `ok`, or how far the clock of this machine is from the database's; signed addresses depend on it."""
    try:
        ahead_s = time.time() - clock.now().timestamp()
    except Error:
        # The reason has been logged by check_database.
        return "unknown"
    return OK if abs(ahead_s) <= MOST_DIFFERENCE_S else f"{ahead_s:+.0f} s from the database's clock"


def check_migrations() -> str:
    """Return `ok`, or how many migrations are missing, or which columns differ from the models."""
    try:
        if missing := missing_migrations():
            return f"{len(missing)} missing"
        different = _different_columns()
    except SchemaError as error:
        return str(error)
    except Error:
        # The reason has been logged by check_database.
        return "unknown"
    return f"columns differ: {', '.join(different[:10])}" if different else OK


_sound_columns: set[str] = set()


def _different_columns() -> list[str]:
    """Compare the columns once for each database: no table changes without a migration, and probes are frequent."""
    name = str(connection.settings_dict["NAME"])
    if name in _sound_columns:
        return []
    different = different_columns()
    if not different:
        _sound_columns.add(name)
    return different


def ask_broker() -> str:
    """Return `ok`, or that a public site's broker is open; raises what the broker's client raises."""
    options = {**settings.CELERY.get("broker_transport_options", {})}
    if settings.BROKER_URL.startswith("redis"):
        options |= {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    with Connection(
        settings.BROKER_URL,
        transport=settings.CELERY.get("broker_transport"),
        transport_options=options,
        connect_timeout=TIMEOUT_S,
    ) as broker:
        broker.ensure_connection(max_retries=1, interval_start=0, timeout=TIMEOUT_S)
    if settings.PUBLIC and lets_anyone_in(settings.BROKER_URL, TIMEOUT_S):
        logger.error(
            "The broker accepts connections without a password. Close it: docs/workers.md, Accounts."
        )
        return "accepts connections without a password"
    return OK


def ask_store() -> str:
    """Return `ok`; raises what the store raises."""
    current_store().check()
    return OK


def check_disk() -> str:
    """Return `ok`, or that the site's folder can't be written or is nearly full."""
    folder = Path(settings.HOME)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"probe")
            file.flush()
    except OSError as error:
        logger.error("The site's folder %s can't be written: %s", folder, error.strerror)
        return f"can't be written: {error.strerror}"
    free = shutil.disk_usage(folder).free
    return OK if free >= settings.DISK_RESERVE_BYTES else f"{free // 1024**2} MiB free"


def check_process(process: Process) -> str:
    """Return `ok`, or how long ago the process last checked in."""
    try:
        silence = silences()[process]
    except Error:
        return "unknown"
    if silence is None:
        return "never started"
    late = silence > timedelta(seconds=settings.LIVENESS_LATE_SECONDS)
    return f"silent for {silence.total_seconds():.0f} s" if late else OK


CHECKS: dict[str, Check] = {
    "database": check_database,
    "migrations": check_migrations,
    "time": check_time,
    "broker": BoundedCheck("broker", ask_broker),
    "store": BoundedCheck("store", ask_store),
    "disk": BoundedCheck("disk", check_disk),
    **{process.value: partial(check_process, process) for process in Process},
}
