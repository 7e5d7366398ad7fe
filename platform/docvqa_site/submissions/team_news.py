"""What a team is notified of that somebody else decided about its submission, with the reason."""

from django.conf import settings
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.teams.selectors import active_members


def notify_of_disqualification(run: Run, lifted_because: str = "") -> None:
    """Notify the team that its run is disqualified, and how to appeal; or that it no longer is, and why."""
    if not run.disqualified_because:
        _notify(
            run.submission,
            f"Your run “{run}” is no longer disqualified",
            "The organizers have lifted the disqualification. The run is ranked again if it meets the track's "
            "conditions.",
            *([f"Reason: {lifted_because}"] if lifted_because else []),
            address=run.submission.get_absolute_url(),
            is_official=True,
        )
        return
    _notify(
        run.submission,
        f"Your run “{run}” has been disqualified",
        f"The organizers have disqualified your run “{run}”. It remains listed without a rank, along with this "
        "public reason:",
        run.disqualified_because,
        "If you think this is wrong, your team can appeal once. An organizer will look at the run again and "
        "reply.",
        address=reverse("reviews:run_appeal", args=[run.pk]),
        is_official=True,
    )


def notify_of_withdrawal(submission: Submission, actor: User, reason: str) -> None:
    """Notify the other members that one of the team's owners has withdrawn a submission."""
    _notify(
        submission,
        f"Your team's submission “{submission}” has been withdrawn",
        f"{actor.name or actor.email} has withdrawn “{submission}” (track: {submission.track}). This can't be undone, "
        f"and the {submission.slot} is not returned.",
        *([f"Reason: {reason}"] if reason else []),
        address=submission.get_absolute_url(),
        actor=actor,
    )


def notify_of_new_evaluation(run: Run, reason: str) -> None:
    """Notify the team that the organizers have its run evaluated again."""
    kept = " Until then, the run keeps its current results and rank." if run.scored_at else ""
    _notify(
        run.submission,
        f"Your run “{run}” is being re-evaluated",
        f"The organizers have queued your run “{run}” again. You'll be notified of the new result.{kept}",
        *([f"Reason: {reason}"] if reason else []),
        address=run.submission.get_absolute_url(),
    )


def _notify(
    submission: Submission,
    subject: str,
    *paragraphs: str,
    address: str,
    actor: User | None = None,
    is_official: bool = False,
) -> None:
    people = [person for person in active_members(submission.team) if person != actor]
    texts = [*paragraphs, settings.SITE_URL + address]
    notify(people, Kind.RESULTS, subject, texts, is_official=is_official)
