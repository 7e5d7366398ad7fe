"""Notifications for teams and organizers: plain text, part of the transaction of the change."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import apnumber
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.selectors import organizers_of
from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.evaluation.models import Examination, StepQueue, TestSet
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.signals import rank_asked
from docvqa_site.teams.selectors import active_members
from docvqa_site.ui.rounding import epsilon_text
from docvqa_site.ui.templatetags.ui import readable_bytes
from evaluator.errors import Problem
from evaluator.scoring.metrics import cut

MAX_PROBLEMS = 10


def notify_team(run: Run, problems: Sequence[Problem]) -> None:
    """Notify every member of the team how the run's evaluation ended."""
    submission = run.submission
    page = settings.SITE_URL + submission.get_absolute_url()
    paragraphs = [str(problem) for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        paragraphs.append(f"… and {len(problems) - MAX_PROBLEMS} more; see the page.")
    texts = [_outcome(run), *paragraphs, page]
    ended = "could not be evaluated" if run.state == RunState.FAILED else f"has been {run.state}"
    notify(active_members(submission.team), Kind.RESULTS, f"Your run “{run}” {ended}", texts)


def notify_of_reveal(test_set: TestSet, tracks: Sequence[Track], runs: Collection[UUID], reason: str) -> None:
    """Notify the teams of these runs that their scores are those on the private part of the test set from now on."""
    submissions = Submission.objects.filter(runs__in=runs, state=SubmissionState.SUBMITTED)
    people = User.objects.filter(membership__team__in=submissions.values("team"), is_active=True)
    names = " and ".join(map(str, tracks))
    text = (
        f"The organizers have revealed the private part of the test set of {names}. Scores and ranks are now based on "
        "the private part; each run's score on the public part is shown next to it."
    )
    page = settings.SITE_URL + reverse("submissions:list")
    key = f"revealed {test_set.pk}"
    paragraphs = [text, *([reason] if reason else []), page]
    notify(people, Kind.RESULTS, f"Final scores: {names}", paragraphs, key=key)


def notify_unattended(queue: StepQueue, waiting: int, since: datetime) -> None:
    """Notify the organizers that no worker takes the steps of a queue."""
    _notify_organizers(
        f"No worker is taking steps from {queue}",
        f"Steps waiting in the queue {queue}: {waiting}, the oldest since {since:%Y-%m-%d %H:%M} UTC. No worker is "
        "listening to this queue. Please check that the workers are running. Nothing is lost: the steps will start as "
        "soon as a worker is available.",
    )


def notify_outage(queue: StepQueue, reason: str) -> None:
    """Notify the organizers that a queue is paused because steps of many runs fail."""
    _notify_organizers(
        f"The queue {queue} is paused",
        f"Steps of many runs are failing in the queue {queue}, through no fault of the participants. Latest reason:",
        reason,
        "The site now tries one step at a time and resumes the queue when one passes. No run loses an attempt.",
    )


def notify_sick_worker(worker: str, queue: StepQueue, reason: str) -> None:
    """Notify the organizers that steps fail at one worker only."""
    _notify_organizers(
        f"The worker {worker} is failing",
        f"Steps of many runs fail on the worker {worker} but pass on others. Latest reason:",
        reason,
        f"Please stop this worker: it takes steps from {queue} that others could run. No run loses an attempt.",
    )


def notify_of_waiting_examinations(track: Track, waiting: Sequence[Examination]) -> None:
    """Notify the organizers of a track that no machine takes these examinations, the oldest first; once for that one.

    The examined runs aren't named, since an organizer may compete in the track.
    """
    oldest = waiting[0]
    notify(
        organizers_of(track),
        Kind.OPERATIONS,
        f"{track}: no machine is running examinations",
        [
            f"Examinations waiting in {track}: {len(waiting)}, the oldest since "
            f"{oldest.requested_at:%Y-%m-%d %H:%M} UTC. Nothing is lost: they begin as soon as a machine for "
            "examinations is running, which the organizers of all tracks can start.",
            settings.SITE_URL + reverse("organizers:desk"),
        ],
        key=f"examination waits {oldest.pk}",
    )


def _notify_organizers(subject: str, *paragraphs: str) -> None:
    page = settings.SITE_URL + reverse("admin:evaluation_stepqueue_changelist")
    staff = User.objects.filter(is_staff=True, is_active=True)
    notify(staff, Kind.OPERATIONS, subject, [*paragraphs, page])


def _under_review(submission: Submission) -> str:
    """Return until when a new result is provisional; empty where no proof is needed."""
    if not submission.required_proofs:
        return ""
    reviewers = apnumber(submission.track.required_reviews)
    return f" The result will remain under review until {reviewers} reviewers have accepted the proof."


def _outcome(run: Run) -> str:
    match run.state:
        case RunState.SCORED:
            results = run.results
            scores = {"ANLS": results.anls, "accuracy": results.accuracy}
            shown = ", ".join(
                f"{name} {cut(score, results.decimals)}"
                for name, score in scores.items()
                if score is not None
            )
            if results.bytes_total is not None:
                shown += f", {readable_bytes(results.bytes_total)} communicated"
            if results.epsilon is not None:
                shown += f", ε = {epsilon_text(results.epsilon)}"
            shown = ", ".join(filter(None, [shown, *(words for _, words in rank_asked.send(Run, run=run))]))
            missing = shortfall(run)
            standing = f" Not ranked: {missing}." if missing else _under_review(run.submission)
            return f"Your run “{run}” (track: {run.submission.track}) has been scored: {shown}.{standing}"
        case RunState.REJECTED:
            returned = f" The {run.submission.slot} was returned." if run.submission.refunded_at else ""
            return f"Your run “{run}” has been rejected.{returned} Problems found:"
        case _:
            return f"We could not evaluate your run “{run}”."
