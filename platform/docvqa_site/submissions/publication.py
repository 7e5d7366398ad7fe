"""When a submission becomes public, and when its team is named: by the rules of its phase, or by its team.

What was published stays so; a team can withdraw it. A team that is named stays named.
"""

import logging
import secrets
from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import Anonymity, Phase, ResultsTiming
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.locks import lock_submission
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.states import change_listed
from docvqa_site.teams.selectors import active_members
from evaluator.errors import ErrorCode, Problem, ProblemError

logger = logging.getLogger(__name__)

ALIAS_BYTES = 3
# What teams read of a phase.
SHOWS_RESULTS = (
    "now shows its results: your submissions are public unless you chose to keep them unpublished."
)
NAMES_TEAMS = "has ended. Anonymous submissions now show their teams, including yours."


def new_alias() -> str:
    """Return a name that says nothing of the team, and that no other submission has."""
    while True:
        alias = f"Anonymous {secrets.token_hex(ALIAS_BYTES)}"
        if not Submission.objects.filter(alias=alias).exists():
            return alias


def published_on_submission(submission: Submission, phase: Phase, now: datetime) -> datetime | None:
    """Return since when a submission is public that is submitted now; None while it isn't."""
    is_kept = submission.practice or submission.keep_private
    return now if phase.results == ResultsTiming.AT_ONCE and not is_kept else None


def visibility_problems(submission: Submission, phase: Phase) -> list[Problem]:
    """Return what of the team's choices the phase doesn't allow; they don't matter for practice."""
    if submission.practice:
        return []
    problems = []
    if submission.keep_private and not phase.allows_private:
        problems.append(_not_allowed(f"The phase “{phase}” doesn't allow unpublished submissions."))
    if submission.anonymous and not phase.allows_anonymous:
        problems.append(_not_allowed(f"The phase “{phase}” doesn't allow anonymous submissions."))
    return problems


def may_publish(submission: Submission, now: datetime | None = None) -> bool:
    """Return whether the team may publish the submission now: not while its phase keeps all results back.

    One for practice is never published.
    """
    phase = submission.phase
    is_open = phase is not None and (
        phase.results == ResultsTiming.AT_ONCE or phase.has_ended(now or timezone.now())
    )
    return submission.is_unpublished and is_open and not submission.practice


@transaction.atomic
def publish(submission: Submission, actor: User, now: datetime | None = None) -> None:
    """Publish a submission, for good.

    Raises `ProblemError` (`E_SUBMISSION_STATE`) unless it is unpublished and its phase lets teams publish now.
    """
    now = now or timezone.now()
    current = lock_submission(submission.pk)
    if not may_publish(current, now):
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="The submission can't be published right now.",
            expected="an unpublished submission, in a phase that shows results or has ended",
            found="a practice submission"
            if current.practice
            else "a public one"
            if current.published_at
            else f"one that is {current.state}",
            next_step="Submit the draft first."
            if current.state == SubmissionState.DRAFT
            else "Its page says who can see it, and for how long.",
        )
    change_listed(current, actor, "submission.published", {"published_at": now})
    submission.published_at = current.published_at


@transaction.atomic
def give_name(submission: Submission, actor: User) -> None:
    """Name the team of an anonymous submission, for good.

    Raises `ProblemError` (`E_SUBMISSION_STATE`) unless it is submitted and anonymous.
    """
    current = lock_submission(submission.pk)
    if current.state != SubmissionState.SUBMITTED or not current.anonymous:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="The submission's team can't be named.",
            expected="a submitted submission that is anonymous",
            found="one that names its team" if not current.anonymous else f"one that is {current.state}",
        )
    change_listed(current, actor, "submission.named", {"anonymous": False}, alias=current.alias)
    submission.anonymous = False


def follow_phases(now: datetime | None = None) -> int:
    """Publish and name what the rules of the phases no longer keep back, and return how many submissions changed.

    The teams are notified, once for each phase.

    Called by the clock, so that the end of a phase has its effect, and when the rules of a phase have changed. Each
    submission is changed in a transaction of its own, since none may wait for a submission while it holds the version
    of the boards.
    """
    now = now or timezone.now()
    changed = 0
    for submission_id in [
        *kept_back(now).values_list("pk", flat=True),
        *to_be_named(now).values_list("pk", flat=True),
    ]:
        with transaction.atomic():
            current = lock_submission(submission_id)
            # Its team may have withdrawn it, or the phase been prolonged, in the meantime.
            if kept_back(now).filter(pk=current.pk).exists():
                change_listed(current, None, "submission.published", {"published_at": now})
                _notify(current, "Results are public", SHOWS_RESULTS, "results public")
            if to_be_named(now).filter(pk=current.pk).exists():
                change_listed(current, None, "submission.named", {"anonymous": False}, alias=current.alias)
                _notify(current, "Teams are named", NAMES_TEAMS, "teams named")
            changed += 1
    if changed:
        logger.info("Published or named by the rules of their phases: %d submissions", changed)
    return changed


def kept_back(now: datetime) -> QuerySet[Submission]:
    """Return the submissions that a phase has kept back, and no longer does; what a team keeps unpublished stays so."""
    shown = Q(phase__results=ResultsTiming.AT_ONCE) | Q(phase__ends_at__lte=now)
    return Submission.objects.filter(
        shown, state=SubmissionState.SUBMITTED, published_at__isnull=True, keep_private=False, practice=False
    )


def to_be_named(now: datetime) -> QuerySet[Submission]:
    """Return the anonymous submissions whose phase has ended, where it names teams at its end."""
    return Submission.objects.filter(
        state=SubmissionState.SUBMITTED,
        anonymous=True,
        phase__anonymity=Anonymity.UNTIL_END,
        phase__ends_at__lte=now,
    )


def _notify(submission: Submission, subject: str, text: str, key: str) -> None:
    """Notify the team of the end of a phase: once, however many submissions it made."""
    phase = f"{submission.track}, phase “{submission.phase}”"
    query = urlencode({"phase": str(submission.phase), "team": submission.team.slug})
    board = f"{reverse('leaderboard:track', args=[submission.track.slug])}?{query}"
    notify(
        active_members(submission.team),
        Kind.RESULTS,
        f"{subject}: {phase}",
        [f"{phase} {text}", settings.SITE_URL + board],
        key=f"{key} {submission.phase_id}",
    )


def _not_allowed(message: str) -> Problem:
    return Problem.of(ErrorCode.SUBMISSION_VISIBILITY, message=message)
