"""The notifications that a phase has ended: to the teams that take part in its track, and to those who close it."""

from datetime import datetime, timedelta

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from docvqa_site.challenge.models import Phase
from docvqa_site.challenge.selectors import organizers_of
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.deadline_reminders import participants

# A phase that ended earlier was closed before this site notified anybody, or while its clock stood still.
RECENT = timedelta(days=2)


def notify_of_closed_phases(now: datetime | None = None) -> int:
    """Notify the members of teams and the organizers, once for each end of a phase; return how many people."""
    now = now or timezone.now()
    recent = Phase.objects.filter(ends_at__lte=now, ends_at__gt=now - RECENT)
    # A draft may have the phases of the track that it was copied from. Final results say more than the end does.
    ended = recent.filter(track__is_draft=False, final_results=None).select_related("track")
    return sum(_notify(phase, now) + _notify_organizers(phase) for phase in ended)


def _notify(phase: Phase, now: datetime) -> int:
    track, ends_at = phase.track, phase.ends_at
    following = track.phases.filter(starts_at__gte=ends_at).order_by("starts_at").first()
    if following and following.starts_at and following.starts_at > now:
        then = f"The next phase, “{following.name}”, begins on {following.starts_at:%b %-d, %Y at %H:%M} UTC."
    elif following:
        then = f"The phase “{following.name}” has begun."
    else:
        then = "The track no longer accepts submissions."
    return notify(
        participants(track),
        Kind.DEADLINES,
        f"{track}: the phase “{phase.name}” has ended",
        [
            f"{track} accepted submissions for the phase “{phase.name}” until {ends_at:%b %-d, %Y, %H:%M} "
            f"UTC. Runs submitted by then will still be evaluated and reviewed. Drafts stay drafts.",
            then,
            settings.SITE_URL + reverse("challenge:track", args=[track.slug]),
        ],
        key=f"phase closed {phase.pk} {ends_at:%Y-%m-%dT%H:%M}",
    )


def _notify_organizers(phase: Phase) -> int:
    track, ends_at = phase.track, phase.ends_at
    return notify(
        organizers_of(track),
        Kind.DEADLINES,
        f"{track}: close the phase “{phase.name}”",
        [
            f"The phase “{phase.name}” of {track} ended on {ends_at:%b %-d, %Y, %H:%M} UTC. Its page on the "
            "organizers' desk says what is still open before you can close it and publish its final results.",
            settings.SITE_URL + reverse("organizers:close_phase", args=[track.slug, phase.pk]),
        ],
        key=f"phase to close {phase.pk} {ends_at:%Y-%m-%dT%H:%M}",
    )
