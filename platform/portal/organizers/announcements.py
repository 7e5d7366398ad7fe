"""Mails of the organizers to all participants, or to those whose team is at some point."""

from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from portal.accounts.models import User
from portal.audit.models import record
from portal.challenge.models import Track
from portal.submissions.models import Run, RunState, Submission, SubmissionState
from portal.teams.models import Membership


class Audience(StrEnum):
    """To whom an announcement goes."""

    EVERYONE = "everyone"
    MEMBERS = "members"
    WITHOUT_SUBMISSION = "without_submission"
    WITH_FAILED_RUN = "with_failed_run"
    WITH_REJECTED_RUN = "with_rejected_run"
    WITH_SCORED_RUN = "with_scored_run"


NAMES = {
    Audience.EVERYONE: "everyone with an account",
    Audience.MEMBERS: "members of all teams",
    Audience.WITHOUT_SUBMISSION: "members of teams without a submission",
    Audience.WITH_FAILED_RUN: "members of teams with a failed run",
    Audience.WITH_REJECTED_RUN: "members of teams with a rejected run",
    Audience.WITH_SCORED_RUN: "members of teams with a scored run",
}
STATES = {
    Audience.WITH_FAILED_RUN: RunState.FAILED,
    Audience.WITH_REJECTED_RUN: RunState.REJECTED,
    Audience.WITH_SCORED_RUN: RunState.SCORED,
}


@dataclass(frozen=True)
class Announcement:
    """A mail to an audience; `track` narrows those of teams to one track, and is None for all tracks."""

    audience: Audience
    subject: str
    text: str
    track: Track | None = None


def recipients(audience: Audience, track: Track | None) -> QuerySet[User]:
    """Return the active people of an audience who have confirmed their address, each once."""
    people = User.objects.filter(is_active=True, emailaddress__verified=True, emailaddress__primary=True)
    if audience is Audience.EVERYONE:
        return people.order_by("pk")
    members = people.filter(Exists(Membership.objects.filter(user=OuterRef("pk"))))
    made = Submission.objects.filter(team=OuterRef("membership__team"), state=SubmissionState.SUBMITTED)
    runs = Run.objects.filter(
        submission__team=OuterRef("membership__team"), submission__state=SubmissionState.SUBMITTED
    )
    if track is not None:
        made, runs = made.filter(track=track), runs.filter(submission__track=track)
    if audience is Audience.WITHOUT_SUBMISSION:
        members = members.filter(~Exists(made))
    elif audience in STATES:
        members = members.filter(Exists(runs.filter(state=STATES[audience])))
    return members.order_by("pk")


@transaction.atomic
def announce(announcement: Announcement, seen: str, *, actor: User) -> bool:
    """Put a mail to each recipient into the outbox if they are as many as was seen; return whether that was done."""
    people = list(recipients(announcement.audience, announcement.track))
    if not people or str(len(people)) != seen:
        return False
    subject = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + " ".join(announcement.subject.split())
    # One mail each, so that nobody sees another's address.
    mails = [
        EmailMessage(subject, announcement.text + "\n", settings.DEFAULT_FROM_EMAIL, [person.email])
        for person in people
    ]
    get_connection().send_messages(mails)
    record(
        actor,
        "announcement.sent",
        actor,
        audience=announcement.audience,
        track=announcement.track.slug if announcement.track else "",
        title=announcement.subject,
        text=announcement.text,
        recipients=len(people),
    )
    return True
