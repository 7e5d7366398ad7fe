"""The part of a submission's page that shows how far the evaluation of its runs is."""

import hashlib
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.evaluation import services
from docvqa_site.evaluation.display.polling import poll_s, progress_version
from docvqa_site.evaluation.display.status import RunStatus, statuses
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.selectors import sees_private
from docvqa_site.submissions.views import attempt, own_membership, shown_submission, team_action


@require_safe
def status(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Show the part of the page that is requested again and again until every run is finished."""
    submission = shown_submission(request, submission_id)
    if request.GET.get("version") == progress_version(submission):
        # The page keeps what it shows and asks again.
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = {"submission": submission, **status_context(request, submission)}
    context["is_own"] = own_membership(request, submission) is not None
    context["may_cancel"] = context["is_own"] and services.may_cancel(submission)
    # The page then asks for its part with the results: after the score, and again after the leakage is measured.
    is_awaited = context["is_measuring"] and "measuring" in request.GET
    context["has_ended"] = (
        context["is_final"] and submission.state != SubmissionState.DRAFT and not is_awaited
    )
    response = render(request, "evaluation/status.html", context)
    if submission.state == SubmissionState.DRAFT:
        # Canceled by somebody else of the team: this is another page now.
        response["HX-Refresh"] = "true"
    return response


@team_action
def cancel(request: UserRequest, submission: Submission) -> None:
    """Make a draft again of what waits for its evaluation."""
    done = f"The submission was canceled and is a draft again. The {submission.slot} was returned."
    attempt(request, lambda: services.cancel(submission, actor=request.user), done)


def status_context(request: HttpRequest, submission: Submission) -> dict[str, Any]:
    """Return what the status fragment shows. The public sees scored runs only, and not all findings of the checks."""
    # Read before what it is the version of, so that a change in between is shown by the next request.
    version = progress_version(submission)
    is_insider = sees_private(request.user, submission)
    # Not before the version either; the rest of the page reads the same runs.
    prefetch_related_objects([submission], "runs")
    shown = statuses(run for run in submission.runs.all() if is_insider or run.scored_at)
    line = ", ".join(_in_words(status) for status in shown)
    digest = hashlib.sha256(line.encode()).hexdigest()[:16]
    return {
        "is_insider": is_insider,
        "statuses": shown,
        "is_final": submission.state == SubmissionState.DRAFT or all(status.is_final for status in shown),
        "is_measuring": any(status.is_measuring for status in shown),
        "version": version,
        "poll_s": poll_s({step.state for status in shown for step in status.steps}),
        "line": line,
        "digest": digest,
        # Screen readers announce changes only.
        "is_news": request.GET.get("seen", "") != digest,
    }


def _in_words(status: RunStatus) -> str:
    step = f" {status.step_name.lower()}" if status.step and not status.is_final else ""
    return f"{status.run.label}: {status.run.shown_state}{step}"
