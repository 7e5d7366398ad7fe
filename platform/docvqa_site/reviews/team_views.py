"""The pages on which a team reads what happened to its proof, answers reviewers, appeals, and sends a revised proof."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.notifications.inbox import mark_opened
from docvqa_site.proofs.named_code import named_code
from docvqa_site.reviews.access import reviewed_submission
from docvqa_site.reviews.appeals import appeal, may_appeal
from docvqa_site.reviews.eligibility import eligible_reviewers
from docvqa_site.reviews.forms import AppealForm, MessageForm
from docvqa_site.reviews.selectors import AppealState, appeals, verdict_on
from docvqa_site.reviews.threads import MESSAGES_PER_DAY, is_of_team, post_message
from docvqa_site.reviews.timeline import timeline
from docvqa_site.submissions.forms import RevisionForm
from docvqa_site.submissions.models import Artifact, Submission
from docvqa_site.submissions.proof_versions import discard_staged, send_revision
from evaluator.errors import Problem, ProblemError


@require_safe
@never_cache
@login_required
def team(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Show the team what its reviewers decided and wrote."""
    submission = _own_submission(request, submission_id)
    mark_opened(request)
    return _page(request, submission)


@require_POST
@never_cache
@login_required
def team_message(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Post a message to the reviewers."""
    submission, form = _own_submission(request, submission_id), MessageForm(request.POST)
    if form.is_valid():
        try:
            post_message(submission, form.about(), form.cleaned_data["text"], author=request.user)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, "Your message has been sent to the reviewers.")
            return redirect("reviews:team", submission.pk)
    return _page(request, submission, message_form=form)


@require_POST
@never_cache
@login_required
def team_appeal(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Appeal against the rejection."""
    submission, form = _own_submission(request, submission_id), AppealForm(request.POST)
    if form.is_valid():
        try:
            appeal(submission, form.cleaned_data["text"], author=request.user)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, "Your appeal has been filed.")
            return redirect("reviews:team", submission.pk)
    return _page(request, submission, appeal_form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def revision(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Show the revised proof as reviewers will see it, and send it with a note, or discard it."""
    submission = _own_submission(request, submission_id)
    staged = Artifact.staged.filter(submission=submission).select_related("upload").first()
    if staged is None:
        return redirect("reviews:team", submission.pk)
    form = RevisionForm(request.POST or None)
    if "discard" in request.POST:
        discard_staged(submission, request.user)
        messages.success(request, f"Version {staged.version} is discarded. The reviewers never saw it.")
        return redirect("reviews:team", submission.pk)
    if form.is_valid():
        try:
            send_revision(submission, form.cleaned_data["note"], request.user)
        except ProblemError as error:
            form.add_error(None, [_in_words(one) for one in error.problems])
        else:
            messages.success(request, f"Version {staged.version} is sent. The review starts again.")
            return redirect("reviews:team", submission.pk)
    context = {
        "submission": submission,
        "staged": staged,
        "before": staged.version - 1,
        "named_code": named_code(staged.upload),
        "proof_url": reverse("reviews:proof", args=[submission.pk]),
        "form": form,
    }
    return render(request, "reviews/revision.html", context, status=422 if form.is_bound else 200)


def _own_submission(request: UserRequest, submission_id: UUID) -> Submission:
    """Return the submission of the visitor's team. Raises `Http404` for all others."""
    submission = reviewed_submission(submission_id)
    if not is_of_team(submission, request.user):
        raise Http404
    return submission


def _page(
    request: UserRequest,
    submission: Submission,
    message_form: MessageForm | None = None,
    appeal_form: AppealForm | None = None,
) -> HttpResponse:
    found = verdict_on(submission)
    filed = appeals().filter(submission=submission).first()
    is_appealed = filed is not None and filed.state == AppealState.OPEN
    days = [one.changes_due for one in submission.reviews.all() if one.changes_due and found.asks_changes]
    context = {
        "submission": submission,
        "verdict": found,
        "changes_due": max(days, default=None),
        "timeline": timeline(submission),
        "staged": Artifact.staged.filter(submission=submission).first(),
        "appeal": filed,
        "appeal_is_open": is_appealed,
        "has_reviewers_left": is_appealed and bool(eligible_reviewers(submission)),
        "may_appeal": may_appeal(submission, found),
        "message_form": message_form or MessageForm(initial={"item": request.GET.get("about")}),
        "appeal_form": appeal_form or AppealForm(),
        "messages_per_day": MESSAGES_PER_DAY,
    }
    return render(request, "reviews/team.html", context, status=422 if message_form or appeal_form else 200)


def _in_words(problem: Problem) -> str:
    where = f" ({problem.where})" if problem.where else ""
    return f"{problem.message}{where} {problem.next_step}"
