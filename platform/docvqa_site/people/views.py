"""A person's own data: a copy of it, and the end of the account."""

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.audit.models import record
from docvqa_site.people.erasing import ask_for_erasure, keep_account
from docvqa_site.people.exporting import export, person_of
from docvqa_site.people.holdings import HOLDINGS
from docvqa_site.periods import ERASURE_DAYS
from docvqa_site.teams.selectors import team_of
from docvqa_site.teams.services import heir_of
from evaluator.errors import ProblemError


@login_required
@require_safe
def data(request: UserRequest) -> HttpResponse:
    """Say what is stored about the person, and what becomes of it when the account is deleted."""
    fates = {holding.what: holding.fate for holding in HOLDINGS.values()}
    context = {
        "fates": fates,
        "days": ERASURE_DAYS,
        "heir": heir_of(request.user),
        "team": team_of(request.user),
    }
    return render(request, "people/data.html", context)


@never_cache
@require_safe
@login_required
@reauthentication_required()
def download(request: UserRequest) -> HttpResponse:
    """Send all that is stored about the person."""
    response = JsonResponse(export(person_of(request.user)), json_dumps_params={"indent": 2})
    response["Content-Disposition"] = 'attachment; filename="my-data.json"'
    record(request.user, "user.data_downloaded", request.user)
    return response


@require_POST
@login_required
@reauthentication_required()
def delete(request: UserRequest) -> HttpResponse:
    """Plan the erasure of the account."""
    try:
        due = ask_for_erasure(request.user)
        messages.success(request, f"Your account will be deleted on {due:%Y-%m-%d}, unless you cancel.")
    except ProblemError as error:
        messages.error(request, f"{error.problem.message} {error.problem.next_step}")
    return redirect("people:data")


@login_required
@require_POST
def keep(request: UserRequest) -> HttpResponse:
    """Cancel a planned erasure."""
    keep_account(request.user)
    messages.success(request, "Your account stays.")
    return redirect("people:data")
