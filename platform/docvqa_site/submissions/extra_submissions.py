"""Submissions beyond the quota, which organizers give a team for a reason that the team reads."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.template.defaultfilters import pluralize

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.models import ExtraSubmissions
from docvqa_site.submissions.quota import WINDOW
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import active_members


@transaction.atomic
def grant_submissions(team: Team, track: Track, count: int, reason: str, *, actor: User) -> ExtraSubmissions:
    """Let the team's next submissions to the track, so many within 24 hours, not count against its quota."""
    granted = ExtraSubmissions.objects.create(team=team, track=track, count=count, reason=reason)
    record(actor, "team.submissions_granted", team, track=track.slug, count=count, reason=reason)
    more = f"{count} more submission{pluralize(count)}"
    until = f"{_usable_until(granted):%b %-d, %Y, %H:%M} UTC"
    notify(
        active_members(team),
        Kind.ANNOUNCEMENTS,
        f"Your team has {more} in {track}",
        [
            f"The organizers have given your team {more} in {track}, in addition to its quota, until {until}.",
            f"Reason: {reason}",
            settings.SITE_URL + track.get_absolute_url(),
        ],
    )
    return granted


def _usable_until(granted: ExtraSubmissions) -> datetime:
    """Return when the submissions expire, or the phase ends that runs now, if that is earlier."""
    expire_at = granted.granted_at + WINDOW
    phase = granted.track.phase_at(granted.granted_at)
    return min(expire_at, phase.ends_at) if phase and phase.ends_at else expire_at
