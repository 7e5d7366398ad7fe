"""Who may use the reviewers' pages."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.challenge.rankings import WITH_PROOFS
from docvqa_site.submissions.models import Submission, SubmissionState

View = Callable[..., HttpResponse]


def for_reviewers(view: View) -> View:
    """Return the view for reviewers alone; one without a second factor is led to set it up."""

    @wraps(view)
    @never_cache
    @login_required
    def checked(request: UserRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if request.user.lacks_second_factor:
            messages.warning(
                request, "Reviewers must log in with a second factor. Set one up to open the queue."
            )
            return redirect("mfa_index")
        if not is_reviewer(request.user):
            raise PermissionDenied
        return view(request, *arguments, **named)

    return checked


def conflict_page(request: UserRequest, submission: Submission, rejection: str) -> HttpResponse:
    """Return the page that says why the visitor can't review a proof."""
    # The title of one that isn't published yet is its team's alone.
    named = submission if submission.published_at else None
    return render(request, "reviews/conflict.html", {"submission": named, "rejection": rejection}, status=403)


def reviewed_submission(submission_id: UUID) -> Submission:
    """Return the submission whose proof is reviewed. Raises `Http404` for drafts, and for tracks without proofs."""
    return get_object_or_404(
        Submission.objects.select_related("team", "track").prefetch_related("runs", "reviews__reviewer"),
        pk=submission_id,
        track__ranking__in=WITH_PROOFS,
        state=SubmissionState.SUBMITTED,
    )
