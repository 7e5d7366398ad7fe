"""Reminders that a track closes soon, to the teams that have registered for it or have a draft or submission in it."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import RegistrationState, TeamRegistration, Track
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Team

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
    return User.objects.filter(is_active=True, membership__team__in=teams_in(track))


def teams_in(track: Track | None) -> QuerySet[Team]:
    """Return the teams that registered for the track and weren't declined, or have a draft or submission in it.

    Without a track, those of any track.
    """
    made = Submission.objects.filter(team=OuterRef("pk"), state__in=TAKES_PART)
    registered = TeamRegistration.objects.filter(team=OuterRef("pk")).exclude(
        state=RegistrationState.DECLINED
    )
    if track is not None:
        made, registered = made.filter(track=track), registered.filter(track=track)
    return Team.objects.filter(Exists(made) | Exists(registered))
