"""Outages as the site notices them itself, and how much of a time they took.

Noticed are: a queue of the workers that is paused, because steps of many runs failed; a queue whose steps no worker
takes; and times in which the watchdog didn't look, since the intake or the whole site was stopped. An organizer adds
what nobody inside can notice, such as a broken network.

An outage of a queue concerns the tracks with a run that waited for it, and no others.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from docvqa_site.liveness.models import Cause, Outage

# A shorter stop is a restart.
SHORTEST_STOP = timedelta(minutes=5)

Interval = tuple[datetime, datetime]


def begin(cause: Cause, queue: str, at: datetime) -> None:
    """Record that an outage began, unless one of this cause in this queue is going on."""
    Outage.objects.bulk_create([Outage(cause=cause, queue=queue, starts_at=at)], ignore_conflicts=True)


def going_on(cause: Cause, queue: str) -> Outage | None:
    """Return the outage of this cause in this queue that is going on."""
    return Outage.objects.filter(cause=cause, queue=queue, ends_at=None).first()


def end(outage: Outage, at: datetime, waited: Mapping[str, datetime]) -> None:
    """Record that an outage of a queue has ended, and from when on each of the tracks waited whose runs needed it."""
    written = {track: since.isoformat() for track, since in waited.items()}
    Outage.objects.filter(pk=outage.pk, ends_at=None).update(ends_at=at, waited=written)


def note_stop(last: datetime, now: datetime) -> None:
    """Record that nothing worked between two moments, unless they are so near that it was a restart."""
    if now - last >= SHORTEST_STOP:
        Outage.objects.create(cause=Cause.STOPPED, starts_at=last, ends_at=now)


def clipped(
    outages: Iterable[Outage], track: str, start: datetime, stop: datetime
) -> list[tuple[Outage, Interval]]:
    """Return the outages that took some of a track's time between two moments, each with that part of it."""
    parts = [
        (outage, (max(began, start), min(outage.ends_at or stop, stop)))
        for outage in outages
        if (began := outage.began_for(track)) is not None
    ]
    return [(outage, (first, last)) for outage, (first, last) in parts if first < last]


def total(intervals: Iterable[Interval]) -> timedelta:
    """Return how long the intervals are together; what several have in common counts once."""
    found, until = timedelta(), None
    for first, last in sorted(intervals):
        begin_at = first if until is None else max(first, until)
        found += max(last - begin_at, timedelta())
        until = last if until is None else max(last, until)
    return found
