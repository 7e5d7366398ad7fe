"""When each of the site's processes last showed that it works.

All times are the database's own clock, so that no two machines need to agree on theirs.
"""

from datetime import timedelta
from enum import StrEnum

from django.db import models
from django.db.models.functions import Now


class Process(StrEnum):
    """A process of the site beside the web server."""

    INTAKE = "intake"
    CLOCK = "clock"
    MAIL = "mail"


class SignOfLife(models.Model):
    """The last sign of life of one kind of process; of several of a kind, the latest counts."""

    process = models.CharField(max_length=20, unique=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "signs of life"

    def __str__(self) -> str:
        return f"{self.process} at {self.at}"


def show_life(process: Process) -> None:
    """Record that a process of this kind works now."""
    SignOfLife.objects.bulk_create(
        [SignOfLife(process=process, at=Now())],
        update_conflicts=True,
        unique_fields=["process"],
        update_fields=["at"],
    )


def silences() -> dict[Process, timedelta | None]:
    """Return how long each process has been silent by the database's clock; None if it never showed any."""
    rows = SignOfLife.objects.annotate(now=Now())
    silent = {row.process: max(row.now - row.at, timedelta()) for row in rows}
    return {process: silent.get(process) for process in Process}
