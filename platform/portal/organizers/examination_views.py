"""The examinations of a run: requested by a button, run by a machine that takes examinations, shown as they go."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from evaluator.errors import ProblemError
from evaluator.messages.jobs import TrustLevel
from portal.accounts.requests import UserRequest
from portal.evaluation import clock
from portal.evaluation.examining import requests
from portal.evaluation.examining.levels import LEVELS
from portal.organizers.access import for_organizers
from portal.organizers.forms import ExaminationForm
from portal.organizers.judged import judged_run
from portal.submissions.models import Run


@require_POST
@for_organizers("evaluation.add_examination")
def examine(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Request an examination of the run."""
    found, form = judged_run(request.user, run_id), ExaminationForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose a level to request an examination.")
        return redirect("organizers:run", run_id)
    try:
        requests.request(found, TrustLevel(form.cleaned_data["level"]), by=request.user)
    except ProblemError as error:
        messages.error(request, str(error.problem))
    else:
        messages.success(request, "The examination is waiting for a machine.")
    return redirect("organizers:run", run_id)


@require_POST
@for_organizers("evaluation.add_examination")
def cancel(request: UserRequest, run_id: UUID, examination_id: int) -> HttpResponseBase:
    """End an examination of the run that waits or runs."""
    examination = get_object_or_404(judged_run(request.user, run_id).examinations, pk=examination_id)
    try:
        requests.cancel(examination, actor=request.user)
    except requests.EndedError:
        messages.warning(request, "The examination has already ended.")
    else:
        messages.success(request, "The examination was canceled.")
    return redirect("organizers:run", run_id)


@require_safe
@for_organizers("submissions.view_submission")
def examinations(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Show the part of the run's page that is requested again and again while an examination waits or runs."""
    found = judged_run(request.user, run_id)
    return render(request, "organizers/examinations.html", {"run": found, **examinations_context(found)})


def examinations_context(run: Run) -> dict[str, Any]:
    """Return what the part of the page shows."""
    rows = list(run.examinations.select_related("by"))
    active = next((one for one in rows if one.is_active), None)
    return {
        "examinations": rows,
        "active": active,
        "is_unattended": active is not None and active in requests.unattended(clock.now()),
        "levels": LEVELS.values(),
    }
