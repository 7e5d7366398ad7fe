"""What a member of a team finds on the home page: the next step, what needs the team, and the latest results."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice

from django.db.models import Max, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from docvqa_site.accounts.models import ApiToken, User
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Acceptance
from docvqa_site.pages.own_submissions import ListedSubmission, rows_of
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.run_appeals import may_appeal
from docvqa_site.submissions.models import Artifact, Run, RunState, RunToken, Submission, SubmissionState
from docvqa_site.submissions.selectors import public_runs, submissions_of
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import team_of

LATEST = 3
MOST_NEEDS = 6
# What closes or was rejected within these times is worth a line.
CLOSES_WITHIN = timedelta(days=7)
REJECTED_WITHIN = timedelta(days=7)


@dataclass(frozen=True)
class Step:
    """One step from an account to a first result, with the page where it is taken.

    Attributes:
        is_skipped: Whether a later step is done without this one, as by those who upload in a browser.
    """

    name: str
    url: str
    is_done: bool
    is_skipped: bool = False


@dataclass(frozen=True)
class Need:
    """Something that waits for the team, and the page where it is dealt with."""

    text: str
    url: str


@dataclass(frozen=True)
class MemberHome:
    """The part of the home page that is a member's own.

    Attributes:
        steps: Empty once the team has a result.
        tracks: Those whose boards list runs of the team.
    """

    team: Team | None
    steps: list[Step]
    needs: list[Need]
    latest: list[ListedSubmission]
    tracks: list[Track] = field(default_factory=list)

    @property
    def next_step(self) -> Step | None:
        """The first step that is neither taken nor skipped; None where none is left, or something else comes first."""
        return next((step for step in self.steps if not (step.is_done or step.is_skipped)), None)


def home_of(user: User, now: datetime | None = None) -> MemberHome:
    """Return what the home page shows to this user."""
    team, now = team_of(user), now or timezone.now()
    if team is None:
        return MemberHome(None, _steps(user, None), [], [])
    kept = submissions_of(team).exclude(state=SubmissionState.WITHDRAWN)
    scored = kept.annotate(scored_at=Max("runs__scored_at")).filter(scored_at__isnull=False)
    latest = list(scored.order_by("-scored_at").prefetch_related("reviews")[:LATEST])
    steps = [] if latest else _steps(user, team)
    listed = public_runs().filter(submission__team=team).values("submission__track")
    needs = list(islice(_needs(team, now), MOST_NEEDS))
    return MemberHome(team, steps, needs, rows_of(latest), list(Track.objects.filter(pk__in=listed)))


def _steps(user: User, team: Team | None) -> list[Step]:
    drafted = Submission.objects.filter(team=team) if team else Submission.objects.none()
    has_draft = drafted.exists()
    uses = list(ApiToken.objects.filter(user=user).values_list("last_used_at", flat=True))
    # Nothing records who got data without terms; the first command that needs a token gets them.
    has_data = any(uses) or Acceptance.objects.filter(user=user).exists()
    submitted = drafted.filter(submitted_at__isnull=False).exists()
    return [
        Step("Create a team, or join one", reverse("teams:mine"), team is not None),
        Step("Get the data and the base weights", reverse("downloads:data"), has_data, has_draft),
        Step("Create an API token for the pfl command", reverse("accounts:tokens"), bool(uses), has_draft),
        Step("Train a model and start your first draft", reverse("submissions:create"), has_draft),
        Step("Submit it", reverse("submissions:list"), submitted),
    ]


def _needs(team: Team, now: datetime) -> Iterator[Need]:
    """Yield what waits for the team, the most urgent first."""
    yield from _proof_needs(team)
    yield from _run_needs(team, now)
    yield from _deadlines(team, now)
    drafts = Submission.objects.filter(team=team, state=SubmissionState.DRAFT).order_by("-created_at")
    for draft in drafts:
        yield Need(f"“{draft}” is a draft. Finish and submit it.", draft.get_absolute_url())
    lost = RunToken.objects.filter(team=team, challenged_at__isnull=False, run__isnull=True, explanation="")
    if count := lost.count():
        noun = "An unresolved challenge has" if count == 1 else f"{count} unresolved challenges have"
        yield Need(f"{noun} no explanation for the reviewers.", reverse("submissions:tokens"))


def _proof_needs(team: Team) -> Iterator[Need]:
    asked = ProofReview.objects.filter(
        submission__team=team,
        submission__state=SubmissionState.SUBMITTED,
        decision=Decision.CHANGES_REQUESTED,
    )
    due: dict[Submission, date | None] = {}
    for review in asked.select_related("submission").order_by("changes_due"):
        due.setdefault(review.submission, review.changes_due)
    for submission, day in due.items():
        deadline = f"; a revision is due by {date_format(day, 'DATE_FORMAT')}" if day else ""
        yield Need(
            f"Reviewers requested changes to the proof of “{submission}”{deadline}.", _review(submission)
        )
    for staged in Artifact.staged.filter(submission__team=team).select_related("submission"):
        yield Need(
            f"Version {staged.version} of the proof of “{staged.submission}” hasn't been sent yet.",
            reverse("reviews:revision", args=[staged.submission_id]),
        )
    rejected = Submission.objects.filter(
        team=team, state=SubmissionState.SUBMITTED, proof_rejected=True, appeal__isnull=True
    )
    for submission in rejected:
        yield Need(f"The proof of “{submission}” was rejected. Revise it, or appeal.", _review(submission))


def _review(submission: Submission) -> str:
    return reverse("reviews:team", args=[submission.pk])


def _run_needs(team: Team, now: datetime) -> Iterator[Need]:
    own = Run.objects.filter(submission__team=team, submission__state=SubmissionState.SUBMITTED)
    for run in own.exclude(disqualified_because="").select_related("submission"):
        if may_appeal(run):
            yield Need(
                f"{run} was disqualified. You can appeal.", reverse("reviews:run_appeal", args=[run.pk])
            )
    lately = Q(
        submission__submitted_at__gt=now - REJECTED_WITHIN, state=RunState.REJECTED, scored_at__isnull=True
    )
    for run in own.filter(lately).select_related("submission"):
        yield Need(f"{run} was rejected. Fix it and try again.", run.submission.get_absolute_url())


def _deadlines(team: Team, now: datetime) -> Iterator[Need]:
    entered = Track.objects.filter(submissions__team=team).distinct().prefetch_related("phases")
    for track in entered:
        phase = track.phase_at(now)
        if phase and phase.ends_at and phase.ends_at <= now + CLOSES_WITHIN:
            end = f"{phase.ends_at:%b %-d, %Y, %H:%M} UTC"
            yield Need(f"{track}: the phase “{phase}” closes on {end}.", track.get_absolute_url())
