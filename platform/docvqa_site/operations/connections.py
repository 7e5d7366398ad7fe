"""What is decided about each connection to PostgreSQL when it begins."""

from threading import Lock
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

# How many connections a process keeps between requests. All of its threads have work only while many people ask at
# once, and would otherwise hold more connections than a small server of PostgreSQL has.
KEPT = 4
_kept: WeakSet[BaseDatabaseWrapper] = WeakSet()
_keeping = Lock()


@receiver(connection_created)
def begin(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Have PostgreSQL interpret queries rather than compile them, and keep the connection if few are kept.

    PostgreSQL compiles the queries that it takes for long. Of a new site it knows so little that it takes one of a few
    rows for long, and it compiles some for seconds that run for milliseconds.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SET jit = off")
    with _keeping:
        if connection in _kept or len(_kept) < KEPT:
            _kept.add(connection)
        else:
            # Django closes it when the request ends, as one that is too old.
            connection.close_at = 0.0
