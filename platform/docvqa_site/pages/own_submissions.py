"""The list of a team's own submissions, with their scores, ranks and the state of their reviews."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.boards.ordering import pending_levels
from docvqa_site.boards.standings import Standing, standings_of
from docvqa_site.periods import PERIODS
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.reviews.verdict import Verdict
from docvqa_site.submissions.models import Run, Submission, SubmissionState
from docvqa_site.submissions.removal import removal_notes
from docvqa_site.submissions.selectors import submissions_of, token_counts, tokens_of
from docvqa_site.submissions.token_fates import fates_of
from docvqa_site.teams.selectors import team_of
from docvqa_site.ui.paging import page_of
from docvqa_site.uploads.storage import storage_of
from evaluator.messages.jobs import TrustLevel

PAGE_LENGTH = 25
# By which the list can be filtered, in this order.
STATES = {
    SubmissionState.DRAFT: "Drafts",
    SubmissionState.SUBMITTED: "Submitted",
    SubmissionState.WITHDRAWN: "Withdrawn",
}
NEWEST_TOKENS = 10


@dataclass(frozen=True)
class ListedRun:
    """A run with its standing; None where it has none. `pending` is the trust level that it lacks for a final rank."""

    run: Run
    standing: Standing | None
    pending: TrustLevel | None = None


@dataclass(frozen=True)
class ListedSubmission:
    """A submission with its runs. `verdict` is that of its reviewers, None where there is none to give yet."""

    submission: Submission
    runs: list[ListedRun]
    verdict: Verdict | None


@login_required
@require_safe
def listing(request: UserRequest) -> HttpResponse:
    team = team_of(request.user)
    if team is None:
        return render(request, "submissions/no_team.html")
    named = request.GET.get("state")
    state = named if named in STATES else ""
    found = submissions_of(team).prefetch_related("reviews")
    if state:
        found = found.filter(state=state)
    drafts = (
        team.submissions.filter(state=SubmissionState.DRAFT).select_related("track").prefetch_related("runs")
    )
    page = page_of(found, PAGE_LENGTH, request.GET.get("page"))
    context = {
        "team": team,
        "states": STATES,
        "state": state,
        "drafts": removal_notes(drafts),
        "query": f"state={state}&" if state else "",
        "page": page,
        "rows": rows_of(page.object_list),
        "fates": fates_of(tokens_of(team)[:NEWEST_TOKENS]),
        "token_counts": token_counts(team),
        "storage": storage_of(team),
        "draft_days": PERIODS["drafts"].days,
    }
    return render(request, "submissions/list.html", context)


def rows_of(submissions: Iterable[Submission]) -> list[ListedSubmission]:
    """Return submissions with the ranks of their runs, in the same order; their reviews should be prefetched."""
    listed = list(submissions)
    standings, lacking = standings_of(run for one in listed for run in one.runs.all()), _pending(listed)
    return [
        ListedSubmission(
            submission,
            [ListedRun(run, standings.get(run.pk), lacking.get(run.pk)) for run in submission.runs.all()],
            _verdict(submission),
        )
        for submission in listed
    ]


def _pending(submissions: Iterable[Submission]) -> dict[UUID, TrustLevel]:
    """Return the trust levels that runs lack on the boards of these submissions' phases."""
    boards = {
        (submission.track, run.budget, submission.phase.name)
        for submission in submissions
        if submission.phase and submission.phase.examined_ranks
        for run in submission.runs.all()
    }
    return {run: level for board in boards for run, level in pending_levels(*board).items()}


def _verdict(submission: Submission) -> Verdict | None:
    is_scored = any(run.scored_at for run in submission.runs.all())
    is_submitted = submission.state == SubmissionState.SUBMITTED and not submission.is_unpublished
    is_reviewed = submission.track.kind.needs_proof and is_submitted
    return verdict_on(submission) if is_scored and is_reviewed else None
