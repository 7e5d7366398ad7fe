"""When each of the site's processes last worked, and the last backup was made; outages, and notices for every page.

All times are the database's own clock, so that no two machines need to agree on theirs.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from django.db import models
from django.db.models.functions import Now


class Process(StrEnum):
    """A process of the site beside the web server."""

    INTAKE = "intake"
    CLOCK = "clock"
    MAIL = "mail"


# Made by a command, so that its age is no silence of a process.
BACKUP = "backup"
# Machines for examinations, which no site needs, so that their silence is no fault.
EXAMINATIONS = "examinations"


class SignOfLife(models.Model):
    """The last check-in of one kind of process, or the last backup; of several of a kind, the latest counts."""

    process = models.CharField(max_length=20, unique=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name = "check-in"

    def __str__(self) -> str:
        return f"{self.process} at {self.at}"


def show_life(process: Process) -> None:
    """Record that a process of this kind works now."""
    _record(process)


def show_examinations() -> None:
    """Record that a machine takes examinations now."""
    _record(EXAMINATIONS)


def note_backup() -> None:
    """Record that a backup is complete now."""
    _record(BACKUP)


def silences() -> dict[Process, timedelta | None]:
    """Return how long each process has been silent; None if it has never checked in."""
    found = ages()
    return {process: found.get(process) for process in Process}


def ages() -> dict[str, timedelta]:
    """Return how long ago each process last checked in, and the newest backup was complete.

    What never happened is left out. The database's clock counts.
    """
    rows = SignOfLife.objects.annotate(now=Now())
    return {row.process: max(row.now - row.at, timedelta()) for row in rows}


def _record(name: str) -> None:
    SignOfLife.objects.bulk_create(
        [SignOfLife(process=name, at=Now())],
        update_conflicts=True,
        unique_fields=["process"],
        update_fields=["at"],
    )


class Cause(models.TextChoices):
    """Why the site, or a part of it, didn't work. The first three it notices itself."""

    STOPPED = "stopped", "the site was stopped"
    UNATTENDED = "unattended", "no worker took steps"
    PAUSED = "paused", "a queue was paused, because steps failed"
    REPORTED = "reported", "reported by the organizers"
    MAINTENANCE = "maintenance", "planned maintenance"


class Outage(models.Model):
    """A time in which the site, or one queue of its workers, didn't work; see `docvqa_site.liveness.outages`.

    `waited` has the tracks with a run that waited for the queue, each with the moment from which on one did, in ISO
    8601. It is null while the outage is going on, and where it isn't known: then the outage concerns every track.
    """

    cause = models.CharField(max_length=12, choices=Cause.choices)
    queue = models.CharField(
        max_length=40, blank=True, help_text="The workers' queue; empty if the whole site was down."
    )
    track = models.CharField(
        max_length=50, blank=True, help_text="The affected track; empty if all tracks were affected."
    )
    starts_at = models.DateTimeField("starts")
    ends_at = models.DateTimeField("ends", null=True, blank=True, help_text="Empty while it is going on.")
    text = models.CharField(max_length=300, blank=True)
    waited = models.JSONField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-starts_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cause", "queue"],
                condition=models.Q(ends_at__isnull=True),
                name="one_outage_of_a_cause_goes_on",
            ),
            models.CheckConstraint(
                condition=models.Q(ends_at__isnull=True) | models.Q(ends_at__gte=models.F("starts_at")),
                name="outages_end_after_they_start",
            ),
        ]

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.get_cause_display(), self.queue, self.text]))

    def began_for(self, track: str) -> datetime | None:
        """Return from when on the track lost time; None if it lost none."""
        if self.track not in ("", track):
            return None
        if not self.queue or self.waited is None:
            return self.starts_at
        since = self.waited.get(track)
        return max(self.starts_at, datetime.fromisoformat(since)) if since else None

    @property
    def is_entered(self) -> bool:
        """Whether organizers entered it, who can change it; what the site noticed, it measured itself."""
        return self.cause in (Cause.REPORTED, Cause.MAINTENANCE)

    def is_going_on(self, now: datetime) -> bool:
        return self.starts_at <= now and (self.ends_at is None or self.ends_at > now)


class Notice(models.Model):
    """A line at the top of every page, with the page that says more.

    One on maintenance belongs to its outage, and one on a moved end to its phase, whose next change ends it.
    """

    text = models.CharField(max_length=500)
    page = models.CharField(max_length=200, blank=True, help_text="A path of this site.")
    shown_from = models.DateTimeField()
    shown_until = models.DateTimeField(db_index=True)
    outage = models.OneToOneField(
        Outage, on_delete=models.CASCADE, null=True, blank=True, related_name="notice"
    )
    phase = models.ForeignKey(
        "challenge.Phase", on_delete=models.CASCADE, null=True, blank=True, related_name="notices"
    )

    class Meta:
        ordering = ["shown_from", "pk"]

    def __str__(self) -> str:
        return self.text
