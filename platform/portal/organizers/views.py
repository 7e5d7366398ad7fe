"""The desk's first page, and the failed runs that are queued again from it."""

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_POST, require_safe

from evaluator.errors.codes import ErrorCode
from portal.accounts.requests import UserRequest
from portal.evaluation.services import requeue_failed
from portal.organizers.access import for_organizers
from portal.organizers.desk import desk_of
from portal.organizers.failures import failed_with


@require_safe
@for_organizers()
def desk(request: UserRequest) -> HttpResponseBase:
    """Show what needs an organizer now."""
    return render(request, "organizers/desk.html", {"desk": desk_of(request.user)})


@require_POST
@for_organizers("evaluation.change_evaluation")
def queue_failed(request: UserRequest, code: str) -> HttpResponseBase:
    """Queue the runs again that failed with this code."""
    if code not in set(ErrorCode):
        raise Http404
    queued = requeue_failed(failed_with(code), actor=request.user)
    level = messages.SUCCESS if queued else messages.WARNING
    messages.add_message(request, level, f"{len(queued)} failed run{pluralize(queued)} queued again.")
    return redirect("organizers:desk")
