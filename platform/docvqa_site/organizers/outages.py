"""Outages in the time of a track's phases, making up for them, and planned maintenance."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import AuditEntry, record
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.phases import BEGINNING
from docvqa_site.evaluation.queue.waited import waited_since
from docvqa_site.liveness import outages as liveness
from docvqa_site.liveness.models import Cause, Notice, Outage
from docvqa_site.liveness.outages import Interval, clipped, total
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.organizers.needs import in_hours
from docvqa_site.organizers.phase_changes import preview_phase, save_phase
from docvqa_site.organizers.track_changes import Preview, in_words
from docvqa_site.submissions.deadline_reminders import participants

MINUTE = timedelta(minutes=1)
# Shorter ones need no extension.
LEAST = timedelta(minutes=10)
# A phase that ended longer ago isn't extended any more.
LATELY = timedelta(days=14)
# Before the end of a phase.
LAST_DAY = timedelta(days=1)
# A notice of a moved deadline is shown so long at most.
SHOWN = timedelta(days=7)


@dataclass(frozen=True)
class Downtime:
    """The outages in the time of a phase, each with that part of it.

    Attributes:
        limited_at: When the phase, which had no end before, got one; None where it always had one, or has none.
    """

    phase: Phase
    outages: Sequence[tuple[Outage, Interval]]
    limited_at: datetime | None = None

    @cached_property
    def total(self) -> timedelta:
        return total(interval for _, interval in self.outages)

    @property
    def owed(self) -> timedelta:
        """How much of it no extension has made up for, in whole minutes.

        Without a deadline nothing is lost: whoever set one later knew of the outages before.
        """
        since = self.limited_at or BEGINNING
        lost = total((max(first, since), last) for _, (first, last) in self.outages if last > since)
        return max(lost // MINUTE - self.phase.extended_minutes, 0) * MINUTE

    @property
    def needs_organizer(self) -> bool:
        """Whether there is so much of it that the phase, which has an end, should be extended."""
        return self.phase.ends_at is not None and self.owed >= LEAST

    @property
    def lines(self) -> list[tuple[Outage, str]]:
        """The outages, each with how much of the phase it took."""
        return [(outage, in_hours((last - first).total_seconds())) for outage, (first, last) in self.outages]

    @property
    def total_words(self) -> str:
        return in_hours(self.total.total_seconds())

    @property
    def owed_words(self) -> str:
        return in_hours(self.owed.total_seconds())


def unclosed_phases(tracks: QuerySet[Track]) -> list[Phase]:
    """Return the phases of public ones of these tracks that have no final results."""
    public = tracks.filter(is_draft=False).order_by()
    phases = Phase.objects.filter(final_results=None, track__in=public).select_related("track")
    return list(phases.order_by("track", "starts_at"))


def downtimes(
    now: datetime, unclosed: Iterable[Phase], outages: Sequence[Outage] | None = None
) -> list[Downtime]:
    """Return the downtime of each of these phases that runs or ended lately; from these outages alone, if given."""
    lately = [phase for phase in unclosed if phase.has_begun(now) and not phase.has_ended(now - LATELY)]
    return _downtimes(lately, now, begun(now) if outages is None else outages)


def downtime_of(phase: Phase, now: datetime) -> Downtime:
    return _downtimes([Phase.objects.select_related("track").get(pk=phase.pk)], now, begun(now))[0]


def lost_to(entry: "Entry", now: datetime) -> list[Downtime]:
    """Return the phases whose downtime an outage that is over is part of, each with that part of it."""
    phases = unclosed_phases(Track.objects.all())
    found = downtimes(now, phases, [Outage(cause=Cause.REPORTED, **asdict(entry))])
    return [one for one in found if one.outages]


def begun(now: datetime) -> list[Outage]:
    """Return the outages so far, the oldest first; those that go on with the tracks whose runs have waited so far."""
    found = list(Outage.objects.filter(starts_at__lt=now).order_by("starts_at"))
    for outage in found:
        if outage.queue and outage.ends_at is None:
            since = waited_since(outage.queue, outage.starts_at)
            outage.waited = {track: joined.isoformat() for track, joined in since.items()}
    return found


@dataclass(frozen=True)
class Extension:
    """What extends a phase by its downtime: the edited phases, in the order in which they are stored, and the effect.

    `obstacle` says why it can't be done with one click; it is empty if it can.
    """

    downtime: Downtime
    edited: Sequence[Phase]
    previews: Sequence[Preview]
    obstacle: str = ""

    @property
    def ends_at(self) -> datetime | None:
        return self.edited[-1].ends_at

    @property
    def sentences(self) -> list[str]:
        return [sentence for one in self.previews for sentence in (one.text, *one.sentences)]

    @property
    def digest(self) -> str:
        """What a confirmation must carry."""
        return "-".join(one.digest[:16] for one in self.previews)


def extension_of(downtime: Downtime, now: datetime) -> Extension | None:
    """Return what extends the phase by its downtime; None where nothing is owed. A phase that has ended opens again."""
    phase = downtime.phase
    if phase.ends_at is None or not downtime.needs_organizer:
        return None
    edited = Phase.objects.select_related("track").get(pk=phase.pk)
    edited.ends_at = _to_the_minute(max(phase.ends_at, now) + downtime.owed)
    later = phase.track.phases.filter(starts_at__gte=phase.ends_at, starts_at__lt=edited.ends_at)
    following = list(later.select_related("track"))
    obstacle = "".join(_obstacle(one, edited.ends_at, now) for one in following)
    # The following one first: two phases never overlap.
    stored = {one.pk: Phase.objects.get(pk=one.pk) for one in (*following, edited)}
    for one in following:
        one.starts_at = edited.ends_at
    previews = [preview_phase(stored[one.pk], one, now) for one in (*following, edited)]
    return Extension(downtime, [*following, edited], previews, obstacle)


def _to_the_minute(end: datetime) -> datetime:
    """Return the time, rounded up to a whole minute: nobody gets less than is owed."""
    minute = end.replace(second=0, microsecond=0)
    return minute if minute == end else minute + MINUTE


def _obstacle(following: Phase, starts_at: datetime, now: datetime) -> str:
    if following.has_begun(now) or following.has_ended(starts_at):
        return f"The phase “{following}” conflicts: adjust the phases manually. "
    return ""


@transaction.atomic
def extend(phase: Phase, seen: str, *, actor: User) -> bool:
    """Extend a phase by its downtime, with a notice on all pages and a notification, if that does what was seen."""
    track, now = Track.objects.select_for_update().get(pk=phase.track_id), timezone.now()
    downtime = downtime_of(phase, now)
    extension = extension_of(downtime, now)
    if extension is None or extension.obstacle or extension.digest != seen:
        return False
    reason = f"The phase lost {downtime.owed_words} to outages."
    for edited, preview in zip(extension.edited, extension.previews, strict=True):
        if not save_phase(edited, reason, preview.digest, actor=actor, notifies=False):
            transaction.set_rollback(True)
            return False
    minutes = downtime.owed // MINUTE
    Phase.objects.filter(pk=phase.pk).update(extended_minutes=F("extended_minutes") + minutes)
    record(actor, "phase.extended", phase, track=track.slug, minutes=minutes)
    text = f"{track}: because of outages, the phase “{phase}” now ends on {in_words(extension.ends_at)}."
    page = track.get_absolute_url()
    Notice.objects.create(text=text, page=page, phase=phase, shown_from=now, shown_until=now + SHOWN)
    notify(
        participants(track),
        Kind.DEADLINES,
        f"{track}: the phase “{phase}” is extended",
        [f"{text} {reason}", settings.SITE_URL + page],
        is_official=True,
    )
    return True


@dataclass(frozen=True)
class Entry:
    """What an organizer enters: an outage that is over, or maintenance, of a track or, without one, of all."""

    starts_at: datetime
    ends_at: datetime
    track: str
    text: str

    def is_over(self, now: datetime) -> bool:
        return self.ends_at <= now

    def digest(self, now: datetime) -> str:
        """What a confirmation must carry: all but this is in what it repeats."""
        return "over" if self.is_over(now) else "coming"

    @property
    def notice(self) -> str:
        """The line at the top of every page until the maintenance is over."""
        return f"Planned maintenance from {in_words(self.starts_at)} to {in_words(self.ends_at)}. {self.text}".strip()

    @property
    def length(self) -> str:
        return in_hours((self.ends_at - self.starts_at).total_seconds())


def last_days(entry: Entry, now: datetime) -> list[Phase]:
    """Return the phases that the entry takes time from in their last day, when most teams submit."""
    ending = Phase.objects.select_related("track").filter(
        ends_at__gt=max(entry.starts_at, now),
        ends_at__lt=entry.ends_at + LAST_DAY,
        track__is_draft=False,
        final_results=None,
    )
    if entry.track:
        ending = ending.filter(track__slug=entry.track)
    begun = [one for one in ending if one.starts_at is None or one.starts_at < entry.ends_at]
    return sorted(begun, key=lambda phase: (phase.ends_at, phase.pk))


@transaction.atomic
def add_outage(entry: Entry, *, actor: User) -> None:
    """Store what an organizer entered; maintenance with a notice on all pages."""
    is_over = entry.is_over(timezone.now())
    cause = Cause.REPORTED if is_over else Cause.MAINTENANCE
    outage = Outage.objects.create(cause=cause, **asdict(entry))
    _show_notice(outage, entry)
    _record(actor, "reported" if is_over else "planned", outage)


@transaction.atomic
def change_outage(outage: Outage, entry: Entry, *, actor: User) -> None:
    """Change what an organizer entered, with its notice. What was announced stays maintenance once it is over."""
    current = Outage.objects.select_for_update().get(pk=outage.pk)
    new = asdict(entry)
    changes = {
        name: [getattr(current, name), value]
        for name, value in new.items()
        if getattr(current, name) != value
    }
    if not changes:
        return
    if not entry.is_over(timezone.now()):
        current.cause = Cause.MAINTENANCE
    for name, value in new.items():
        setattr(current, name, value)
    current.save()
    _show_notice(current, entry)
    _record(actor, "changed", current, changes={name: [*map(_plain, pair)] for name, pair in changes.items()})


def _show_notice(outage: Outage, entry: Entry) -> None:
    """Show the notice of an outage that isn't over, and no longer that of one that is."""
    now = timezone.now()
    if entry.is_over(now):
        Notice.objects.filter(outage=outage, shown_until__gt=now).update(shown_until=now)
        return
    shown = {"text": entry.notice, "shown_until": entry.ends_at}
    Notice.objects.update_or_create(
        outage=outage, defaults=shown, create_defaults={**shown, "shown_from": now}
    )


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


@transaction.atomic
def withdraw(outage: Outage, *, actor: User) -> bool:
    """Remove an outage that doesn't count; one that is going on ends now instead. Return whether it was removed."""
    now = timezone.now()
    if outage.is_going_on(now):
        if outage.queue:
            liveness.end(outage, now, waited_since(outage.queue, outage.starts_at))
        else:
            Outage.objects.filter(pk=outage.pk).update(ends_at=now)
        Notice.objects.filter(outage=outage).update(shown_until=now)
        outage.refresh_from_db()
        _record(actor, "ended", outage)
        return False
    _record(actor, "removed", outage)
    outage.delete()
    return True


def _record(actor: User, verb: str, outage: Outage, **details: object) -> None:
    """Record what was done with an outage, with its times: it may be changed or removed later."""
    record(
        actor,
        f"outage.{verb}",
        outage,
        what=str(outage),
        starts_at=outage.starts_at.isoformat(),
        ends_at=outage.ends_at.isoformat() if outage.ends_at else None,
        **({"track": outage.track} if outage.track else {"tracks": "all"}),
        **details,
    )


def _downtimes(phases: Sequence[Phase], now: datetime, outages: Sequence[Outage]) -> list[Downtime]:
    """Return the downtime of each phase, which begins when its track is published at the earliest."""
    published = _published(phases) if outages else {}
    limited = _limited(phases) if outages else {}
    found = []
    for phase in phases:
        start = max(phase.starts_at or BEGINNING, published.get(str(phase.track_id), BEGINNING))
        stop = min(phase.ends_at or now, now)
        outages_within = clipped(outages, phase.track.slug, start, stop)
        found.append(Downtime(phase, outages_within, limited.get(str(phase.pk))))
    return found


def _limited(phases: Iterable[Phase]) -> dict[str, datetime]:
    """Return when these phases, which had no end before, got one, as far as that was on the desk."""
    entries = AuditEntry.objects.filter(
        action__in=["phase.added", "phase.changed"],
        object_type=Phase._meta.label_lower,
        object_id__in={str(phase.pk) for phase in phases},
        details__changes__has_key="ends_at",
    ).order_by("at")
    changes = ((entry, entry.details["changes"]["ends_at"]) for entry in entries)
    return {entry.object_id: entry.at for entry, (old, new) in changes if old is None and new is not None}


def _published(phases: Iterable[Phase]) -> dict[str, datetime]:
    """Return when the tracks of these phases were published, in the browser or by the command that added them."""
    tracks = {str(phase.track_id) for phase in phases}
    entries = AuditEntry.objects.filter(
        action__in=["track.added", "track.published"],
        object_type=Track._meta.label_lower,
        object_id__in=tracks,
    )
    return dict(entries.order_by("at").values_list("object_id", "at"))
