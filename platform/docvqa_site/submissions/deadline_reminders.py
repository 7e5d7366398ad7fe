"""Reminders that a track closes soon, to the teams that have a draft or a submission in it."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import Track
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.models import SubmissionState

# How long before the deadline; the shortest that applies is the one to send.
AHEAD = {timedelta(days=1): "within a day", timedelta(days=7): "within a week"}
TAKES_PART = [SubmissionState.DRAFT, SubmissionState.SUBMITTED]


def remind_of_deadlines(now: datetime | None = None) -> int:
    """Notify the members of teams that take part in a track which closes soon; return how many people.

    Each reminder of one deadline is sent once, however often this is called. A deadline that is moved is another one.
    """
    now = now or timezone.now()
    deadlines = [(track, track.closes_at) for track in Track.objects.prefetch_related("phases")]
    return sum(
        _remind(track, deadline, now)
        for track, deadline in deadlines
        if deadline and now < deadline <= now + max(AHEAD)
    )


def _remind(track: Track, deadline: datetime, now: datetime) -> int:
    ahead = min(span for span in AHEAD if deadline <= now + span)
    page = settings.SITE_URL + reverse("challenge:track", args=[track.slug])
    text = (
        f"{track} accepts submissions until {deadline:%b %-d, %Y, %H:%M} UTC. "
        "Drafts that aren't submitted by then stay drafts."
    )
    return notify(
        participants(track),
        Kind.DEADLINES,
        f"{track} closes {AHEAD[ahead]}",
        [text, page],
        key=f"deadline {track.slug} {deadline:%Y-%m-%dT%H:%M} {ahead.days}",
    )


def participants(track: Track) -> QuerySet[User]:
    takes_part = {"membership__team__submissions__track": track, "is_active": True}
    people = User.objects.filter(**takes_part, membership__team__submissions__state__in=TAKES_PART)
    return people.distinct()
