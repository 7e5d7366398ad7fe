"""The one clock of evaluations: the database's.

Web servers, intake and watchdog may run on machines whose clocks are minutes apart. Whatever one of them writes and
another compares is a moment by this clock. No clock of a worker plays a part in any decision.
"""

from datetime import datetime

from django.db import connection
from django.utils import timezone


def now() -> datetime:
    """Return the current moment by the database's clock."""
    if connection.vendor == "sqlite":
        # It lives in this process, on the one machine that all processes share.
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
        return moment
