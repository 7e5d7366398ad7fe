"""What the organizers write to all participants, or to those whose team is at some point."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, TextChoices
from django.utils import timezone
from django.utils.text import slugify

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.news.models import NewsItem
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.deadline_reminders import teams_in
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.teams.models import Membership


class Audience(TextChoices):
    EVERYONE = "everyone", "everyone with an account"
    MEMBERS = "members", "members of all teams"
    IN_TRACK = "in_track", "members of teams that have registered, or have a draft or submission"
    WITHOUT_SUBMISSION = "without_submission", "members of teams that have submitted nothing"
    WITH_FAILED_RUN = "with_failed_run", "members of teams with a failed run"
    WITH_REJECTED_RUN = "with_rejected_run", "members of teams with a rejected run"
    WITH_SCORED_RUN = "with_scored_run", "members of teams with a scored run"
    NOBODY = "nobody", "nobody: publish it on News only"


STATES = {
    Audience.WITH_FAILED_RUN: RunState.FAILED,
    Audience.WITH_REJECTED_RUN: RunState.REJECTED,
    Audience.WITH_SCORED_RUN: RunState.SCORED,
}


@dataclass(frozen=True)
class Announcement:
    """A text to an audience; `track` narrows those of teams to one track, and is None for all tracks.

    `on_news` publishes it on the site's news as well.
    """

    audience: Audience
    subject: str
    text: str
    track: Track | None = None
    on_news: bool = False


def recipients(audience: Audience, track: Track | None) -> QuerySet[User]:
    """Return the active people of an audience who have confirmed their address, each once."""
    people = User.objects.filter(is_active=True, emailaddress__verified=True, emailaddress__primary=True)
    if audience is Audience.NOBODY:
        return people.none()
    if audience is Audience.EVERYONE:
        return people.order_by("pk")
    members = people.filter(Exists(Membership.objects.filter(user=OuterRef("pk"))))
    made = Submission.objects.filter(team=OuterRef("membership__team"), state=SubmissionState.SUBMITTED)
    runs = Run.objects.filter(submission__team=OuterRef("membership__team"))
    runs = runs.filter(submission__state=SubmissionState.SUBMITTED)
    if track is not None:
        made, runs = made.filter(track=track), runs.filter(submission__track=track)
    if audience is Audience.IN_TRACK:
        members = members.filter(membership__team__in=teams_in(track))
    elif audience is Audience.WITHOUT_SUBMISSION:
        members = members.filter(~Exists(made))
    elif audience in STATES:
        members = members.filter(Exists(runs.filter(state=STATES[audience])))
    return members.order_by("pk")


@transaction.atomic
def announce(announcement: Announcement, seen: str, *, actor: User) -> bool:
    """Notify each recipient, by mail those who want it, if they are as many as was seen; return whether it was done."""
    people = list(recipients(announcement.audience, announcement.track))
    if str(len(people)) != seen or not (people or announcement.on_news):
        return False
    notify(people, Kind.ANNOUNCEMENTS, announcement.subject, [announcement.text])
    if announcement.on_news:
        slug = f"{slugify(announcement.subject)[:120]}-{timezone.now():%Y%m%d-%H%M%S}"
        NewsItem.objects.create(title=announcement.subject, slug=slug, text=announcement.text)
    record(
        actor,
        "announcement.sent",
        actor,
        audience=announcement.audience,
        track=announcement.track.slug if announcement.track else "",
        title=announcement.subject,
        text=announcement.text,
        recipients=len(people),
        on_news=announcement.on_news,
    )
    return True
