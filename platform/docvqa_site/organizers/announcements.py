"""What the organizers write to all participants, to those whose team is at some point, or to one team."""

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, TextChoices
from django.utils import timezone
from django.utils.text import slugify

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.news.models import NewsItem
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.deadline_reminders import teams_in
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.selectors import closed_tracks
from docvqa_site.teams.models import Membership, Team
from docvqa_site.ui.plain_text import plain_text


class Audience(TextChoices):
    EVERYONE = "everyone", "everyone with an account"
    MEMBERS = "members", "members of all teams"
    IN_TRACK = "in_track", "members of teams with a registration, draft or submission"
    WITHOUT_SUBMISSION = "without_submission", "members of teams that have submitted nothing"
    WITH_FAILED_RUN = "with_failed_run", "members of teams with a failed run"
    WITH_REJECTED_RUN = "with_rejected_run", "members of teams with a rejected run"
    WITH_SCORED_RUN = "with_scored_run", "members of teams with a scored run"
    NOBODY = "nobody", "nobody: publish it on News only"
    # Written to from its page.
    TEAM = "team", "members of one team"


STATES = {
    Audience.WITH_FAILED_RUN: RunState.FAILED,
    Audience.WITH_REJECTED_RUN: RunState.REJECTED,
    Audience.WITH_SCORED_RUN: RunState.SCORED,
}
# Those who take part in a track: the people whom organizers of single tracks write to.
OF_TRACK = (Audience.IN_TRACK, *STATES)
# Those that a track narrows.
NARROWED = (*OF_TRACK, Audience.WITHOUT_SUBMISSION)


@dataclass(frozen=True)
class Announcement:
    """A text in Markdown to an audience.

    Attributes:
        track: Narrows an audience of teams to one track; None for all tracks.
        team: The team of `Audience.TEAM`.
        lead: Says who writes, where that isn't the organizers of the site to everyone.
        on_news: Publishes it on the site's news as well.
    """

    audience: Audience
    subject: str
    text: str
    track: Track | None = None
    team: Team | None = None
    lead: str = ""
    on_news: bool = False

    @property
    def addressees(self) -> str:
        """Whom it is for, in words."""
        narrowed = f" (in {self.track})" if self.track else ""
        return f"members of {self.team}" if self.team else f"{self.audience.label}{narrowed}"

    @property
    def paragraphs(self) -> list[str]:
        """What emails and notifications say: neither formats anything."""
        return [text for text in (self.lead, plain_text(self.text)) if text]


def audiences_for(organizer: User) -> list[Audience]:
    """Return to whom the organizer may write: those of single tracks to the teams of these; empty for nobody."""
    if organizer.organizes_single_tracks:
        return list(OF_TRACK) if organizer.has_perm("challenge.change_track") else []
    everyone: list[Audience] = [audience for audience in Audience if audience is not Audience.TEAM]
    return everyone if organizer.has_perm("accounts.view_user") else []


def tracks_for(organizer: User) -> QuerySet[Track]:
    """Return the tracks to whose teams the organizer may write.

    The numbers of recipients say how others are doing, which an organizer of single tracks who competes doesn't learn.
    """
    tracks = organized_tracks(organizer).filter(is_draft=False)
    return tracks.exclude(pk__in=closed_tracks(organizer)) if organizer.organizes_single_tracks else tracks


def lead_of(organizer: User, team: Team | None, track: Track | None) -> str:
    """Return the first sentence of what the organizer writes to a team, or to the teams of a track."""
    if not organizer.organizes_single_tracks:
        return f"From the organizers to your team, {team}." if team else ""
    tracks = [track] if track else organized_tracks(organizer).filter(is_draft=False)
    names = ", ".join(map(str, tracks))
    return f"From the organizers of {names} to {f'your team, {team}' if team else 'the teams of this track'}."


def recipients(audience: Audience, track: Track | None, team: Team | None = None) -> QuerySet[User]:
    """Return the active people of an audience who have confirmed their address, each once."""
    people = User.objects.filter(is_active=True, emailaddress__verified=True, emailaddress__primary=True)
    if audience is Audience.NOBODY:
        return people.none()
    if audience is Audience.EVERYONE:
        return people.order_by("pk")
    members = people.filter(Exists(Membership.objects.filter(user=OuterRef("pk"))))
    if audience is Audience.TEAM:
        return people.filter(membership__team=team, membership__isnull=False).order_by("pk")
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
    people = list(recipients(announcement.audience, announcement.track, announcement.team))
    if str(len(people)) != seen or not (people or announcement.on_news):
        return False
    paragraphs = announcement.paragraphs
    if announcement.on_news:
        slug = f"{slugify(announcement.subject)[:120]}-{timezone.now():%Y%m%d-%H%M%S}"
        news = NewsItem.objects.create(title=announcement.subject, slug=slug, text=announcement.text)
        paragraphs.append(settings.SITE_URL + news.get_absolute_url())
    notify(people, Kind.ANNOUNCEMENTS, announcement.subject, paragraphs)
    about = {"team": announcement.team.pk} if announcement.team else {}
    record(
        actor,
        "announcement.sent",
        actor,
        audience=Audience(announcement.audience).label,
        track=announcement.track.slug if announcement.track else "",
        **about,
        title=announcement.subject,
        text=announcement.text,
        recipients=len(people),
        on_news=announcement.on_news,
    )
    return True
