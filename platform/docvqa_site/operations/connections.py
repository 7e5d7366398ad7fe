"""What each connection to PostgreSQL is told when it begins."""

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver


@receiver(connection_created)
def interpret_queries(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Have PostgreSQL interpret queries rather than compile them.

    It compiles those that it takes for long, and of a new site it knows so little that it takes a query of a few rows
    for one: compiling some of a page takes seconds, and running them milliseconds.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET jit = off")
