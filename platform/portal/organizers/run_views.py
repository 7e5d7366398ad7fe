"""One run with everything that an organizer may do to it. Every action is a POST from a page that says what it does."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from evaluator.errors import ProblemError
from portal.accounts.requests import UserRequest
from portal.audit.models import AuditEntry
from portal.audit.transitions import IllegalTransitionError
from portal.challenge.models import Track
from portal.evaluation.display.results import shortfall
from portal.evaluation.intake.near_copies import near_copies_of
from portal.evaluation.services import evaluate_again
from portal.organizers.access import for_organizers
from portal.organizers.examination_views import examinations_context
from portal.organizers.forms import DisqualificationForm
from portal.organizers.judged import judged_run, judged_runs
from portal.reviews.selectors import judgeable_submissions
from portal.submissions.models import RUN_STATES, Run, RunState
from portal.submissions.services import disqualify, mark_baseline, refund

PAGE_LENGTH = 50


@require_safe
@for_organizers("submissions.view_submission")
def runs(request: UserRequest) -> HttpResponseBase:
    """List the runs, the newest first, by track, state and text."""
    chosen = {name: request.GET.get(name, "") for name in ("track", "state", "text")}
    found = judged_runs(request.user)
    if chosen["track"]:
        found = found.filter(submission__track__slug=chosen["track"])
    if chosen["state"]:
        found = found.filter(state=chosen["state"])
    if text := chosen["text"]:
        found = found.filter(Q(submission__title__icontains=text) | Q(submission__team__name__icontains=text))
    page = Paginator(found.order_by("-submission__submitted_at", "pk"), PAGE_LENGTH).get_page(
        request.GET.get("page")
    )
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "page": page,
        "chosen": chosen,
        "tracks": Track.objects.all(),
        "states": [state for state in RUN_STATES if state[0] != RunState.DRAFT],
        "query": query.urlencode() + "&" if query else "",
    }
    return render(request, "organizers/runs.html", context)


@require_safe
@for_organizers("submissions.view_submission")
def run(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Show the run with what may be done to it."""
    return _page(request, judged_run(request.user, run_id), DisqualificationForm())


@require_POST
@for_organizers("evaluation.change_evaluation")
def evaluate(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Queue the run again."""
    found = judged_run(request.user, run_id)
    if not _is_confirmed(request):
        return redirect("organizers:run", run_id)
    try:
        evaluate_again(found, actor=request.user)
    except IllegalTransitionError:
        messages.warning(request, "The evaluation is still in progress.")
    except ProblemError as error:
        messages.error(request, f"{error.problem.message} {error.problem.found}")
    else:
        messages.success(request, "The run has been queued again.")
    return redirect("organizers:run", run_id)


@require_POST
@for_organizers("submissions.change_submission")
def disqualify_run(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Take the run's rank for a public reason."""
    found, form = judged_run(request.user, run_id), DisqualificationForm(request.POST)
    if not form.is_valid():
        return _page(request, found, form, status=422)
    disqualify(found, form.cleaned_data["reason"], request.user)
    messages.success(request, "The run has been disqualified. The reason is public.")
    return redirect("organizers:run", run_id)


@require_POST
@for_organizers("submissions.change_submission")
def requalify_run(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Give the run its rank back."""
    disqualify(judged_run(request.user, run_id), "", request.user)
    messages.success(request, "The run is no longer disqualified.")
    return redirect("organizers:run", run_id)


@require_POST
@for_organizers("submissions.change_submission")
def refund_slot(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Give the quota slot of the run's submission back, once."""
    submission = judged_run(request.user, run_id).submission
    if not _is_confirmed(request):
        return redirect("organizers:run", run_id)
    if submission.refunded_at is not None:
        messages.warning(request, "The slot was already restored.")
    else:
        refund(submission, actor=request.user)
        messages.success(request, "The quota slot has been restored.")
    return redirect("organizers:run", run_id)


@require_POST
@for_organizers("submissions.change_submission")
def mark(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Mark the run's submission as the organizers' baseline, or take the mark away."""
    submission = judged_run(request.user, run_id).submission
    mark_baseline(submission, request.POST.get("is_baseline") == "yes", request.user)
    messages.success(
        request,
        "It is a baseline." if submission.is_baseline else "The method is no longer marked as a baseline.",
    )
    return redirect("organizers:run", run_id)


def _is_confirmed(request: UserRequest) -> bool:
    """Return whether the visitor ticked that they want this, and ask them to if not."""
    if request.POST.get("confirmed") == "yes":
        return True
    messages.warning(request, "Nothing was changed: please tick the box to confirm.")
    return False


def _page(
    request: UserRequest, found: Run, form: DisqualificationForm, status: int = 200
) -> HttpResponseBase:
    submission, judged = found.submission, judgeable_submissions(request.user)
    about = Q(object_type="submissions.run", object_id=str(found.pk))
    about |= Q(object_type="submissions.submission", object_id=str(submission.pk))
    examined = examinations_context(found)
    numbers = [str(examination.pk) for examination in examined["examinations"]]
    about |= Q(object_type="evaluation.examination", object_id__in=numbers)
    context: dict[str, Any] = {
        "run": found,
        "submission": submission,
        "form": form,
        "unranked": shortfall(found) if found.scored_at or found.disqualified_because else "",
        "entries": AuditEntry.objects.filter(about).select_related("actor")[:PAGE_LENGTH],
        "near_copies": near_copies_of(found, judged),
        **examined,
        "is_over": found.state in {RunState.SCORED, RunState.REJECTED, RunState.FAILED},
    }
    return render(request, "organizers/run.html", context, status=status)
