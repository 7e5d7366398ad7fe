"""The pages on which a team prepares its submissions. Other teams' submissions answer 404."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluator.errors import ProblemError
from portal.accounts.requests import UserRequest
from portal.challenge.models import Track
from portal.submissions import services
from portal.submissions.draft_files import files_of
from portal.submissions.draft_problems import problems_of
from portal.submissions.forms import NewSubmissionForm, SubmissionForm
from portal.submissions.models import Submission, SubmissionState
from portal.submissions.selectors import (
    own_submission,
    quota_of,
    submissions_of,
    token_counts,
    tokens_of,
    visible_submissions,
)
from portal.teams.selectors import owns, team_of
from portal.uploads.storage import storage_of

PAGE_LENGTH = 25
NEWEST_TOKENS = 10


@login_required
@require_safe
def listing(request: UserRequest) -> HttpResponse:
    """List the team's submissions, newest first."""
    team = team_of(request.user)
    if team is None:
        return render(request, "submissions/no_team.html")
    page = Paginator(submissions_of(team), PAGE_LENGTH).get_page(request.GET.get("page"))
    context = {
        "team": team,
        "page": page,
        "tokens": tokens_of(team)[:NEWEST_TOKENS],
        "token_counts": token_counts(team),
        "storage": storage_of(team),
        "draft_days": settings.RETENTION_DRAFT_DAYS,
    }
    return render(request, "submissions/list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: UserRequest) -> HttpResponse:
    """Open a draft: choose a track and describe the method; the draft's page takes the files."""
    team = team_of(request.user)
    if team is None:
        return render(request, "submissions/no_team.html")
    track = Track.objects.filter(slug=request.GET.get("track", "")).first()
    form = NewSubmissionForm(request.POST or None, initial={"track": track})
    problems = []
    if request.method == "POST" and form.is_valid():
        try:
            return redirect(services.create_submission(team, request.user, **form.cleaned_data))
        except ProblemError as error:
            problems = error.problems
    context = {"form": form, "problems": problems}
    return render(request, "submissions/create.html", context, status=409 if problems else 200)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Change a draft's description of the method."""
    submission = _own(request, submission_id)
    if submission.state != SubmissionState.DRAFT:
        return redirect(submission)
    form = SubmissionForm(request.POST or None, instance=submission)
    if request.method == "POST" and form.is_valid():
        try:
            services.describe(submission, form.cleaned_data)
        except ProblemError as error:
            messages.error(request, error.problem.message)
        return redirect(submission)
    return render(request, "submissions/edit.html", {"submission": submission, "form": form})


@login_required
@require_POST
def add_run(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Add a run to a draft."""
    submission = _own(request, submission_id)
    try:
        budget = float(request.POST.get("budget", ""))
    except ValueError:
        budget = None
    try:
        services.add_run(submission, budget)
    except ProblemError as error:
        messages.error(request, error.problem.message)
    return redirect(submission)


@login_required
@require_POST
def remove_run(request: UserRequest, submission_id: UUID, run_id: UUID) -> HttpResponse:
    """Remove a run and its files from a draft."""
    submission = _own(request, submission_id)
    run = get_object_or_404(submission.runs, pk=run_id)
    try:
        services.remove_run(run, request.user)
    except ProblemError as error:
        messages.error(request, error.problem.message)
    return redirect(submission)


@login_required
@require_POST
def submit(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Submit a draft."""
    submission = _own(request, submission_id)
    try:
        services.submit(submission, request.user)
    except ProblemError as error:
        if submission.state == SubmissionState.DRAFT:
            return draft_page(request, submission, error)
        messages.error(request, error.problem.message)
    return redirect(submission)


@login_required
@require_POST
def withdraw(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Withdraw a submission, or delete a draft."""
    submission = _own(request, submission_id)
    try:
        services.withdraw(submission, request.user)
    except ProblemError as error:
        messages.error(request, error.problem.message)
    else:
        messages.success(request, f"“{submission.title}” is withdrawn.")
    return redirect("submissions:list")


def shown_submission(request: HttpRequest, submission_id: UUID) -> Submission:
    """Return the submission if the visitor may see it. Raises `Http404` otherwise."""
    return get_object_or_404(visible_submissions(request.user).distinct(), pk=submission_id)


def _own(request: UserRequest, submission_id: UUID) -> Submission:
    team = team_of(request.user)
    try:
        if team is None:
            raise Submission.DoesNotExist
        return own_submission(team, submission_id)
    except Submission.DoesNotExist as error:
        raise Http404 from error


def is_own(request: HttpRequest, submission: Submission) -> bool:
    """Return whether the submission is of the visitor's team."""
    return request.user.is_authenticated and team_of(request.user) == submission.team


def may_withdraw(request: HttpRequest, submission: Submission) -> bool:
    """Return whether the visitor may withdraw what has been submitted."""
    is_submitted = submission.state == SubmissionState.SUBMITTED
    return is_submitted and request.user.is_authenticated and owns(request.user, submission.team)


def draft_page(
    request: HttpRequest, submission: Submission, error: ProblemError | None = None
) -> HttpResponse:
    """Return the page on which the team fills its draft; `error` says why submitting it failed."""
    now = timezone.now()
    boards, proofs = files_of(submission)
    return render(
        request,
        "submissions/draft.html",
        {
            "submission": submission,
            "boards": boards,
            "proofs": proofs,
            "problems": error.problems if error else problems_of(submission, now),
            "rejected": error is not None,
            "quota": quota_of(submission.team, submission.track, now),
            "storage": storage_of(submission.team),
            "draft_days": settings.RETENTION_DRAFT_DAYS,
        },
        status=409 if error else 200,
    )
