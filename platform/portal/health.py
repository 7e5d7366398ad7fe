"""Health checks for whatever supervises the processes: whether the site runs, and whether it can work."""

import logging
from collections.abc import Callable

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from portal.celery import app

BROKER_TIMEOUT_S = 3

logger = logging.getLogger(__name__)


@never_cache
@require_safe
def alive(_request: HttpRequest) -> JsonResponse:
    """Respond that the process is up. Nothing else is checked, so that a fault elsewhere never restarts it."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """Respond whether the database answers with its tables up to date, and the broker takes messages; 503 otherwise."""
    checks = {name: check() for name, check in CHECKS.items()}
    is_ready = all(outcome == "ok" for outcome in checks.values())
    return JsonResponse(
        {"status": "ready" if is_ready else "not ready", "checks": checks}, status=200 if is_ready else 503
    )


def check_database() -> str:
    """Return `ok`, or that the database doesn't answer."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        logger.exception("The database doesn't answer.")
        return "doesn't answer"
    return "ok"


def check_migrations() -> str:
    """Return `ok`, or how many migrations have not been applied."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Error:
        # The reason has been logged by check_database.
        return "unknown"
    return f"{len(missing)} missing" if missing else "ok"


def check_broker() -> str:
    """Return `ok`, or that the broker doesn't answer."""
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_TIMEOUT_S)
    except (OperationalError, OSError):
        logger.exception("The broker doesn't answer.")
        return "doesn't answer"
    return "ok"


CHECKS: dict[str, Callable[[], str]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
}
