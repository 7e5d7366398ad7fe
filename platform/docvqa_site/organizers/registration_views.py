"""Registrations of teams, which organizers of their tracks read, admit and decline."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import RegistrationState, TeamRegistration
from docvqa_site.challenge.registering import decide
from docvqa_site.organizers.access import POST, for_organizers
from docvqa_site.organizers.forms import RegistrationDecisionForm
from docvqa_site.organizers.registrations import registrations_for
from docvqa_site.ui.paging import page_of

PAGE_LENGTH = 50


@for_organizers("challenge.change_track")
def registrations(request: UserRequest) -> HttpResponseBase:
    """List the registrations, those that wait first."""
    page = page_of(registrations_for(request.user), PAGE_LENGTH, request.GET.get("page"))
    return render(request, "organizers/registrations.html", {"page": page})


@for_organizers("challenge.change_track", methods=POST)
def decide_registration(request: UserRequest, registration_id: int) -> HttpResponseBase:
    found: TeamRegistration = get_object_or_404(registrations_for(request.user), pk=registration_id)
    form = RegistrationDecisionForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Admit or decline, with a reason of at most 300 characters.")
    elif decide(
        found, RegistrationState(form.cleaned_data["state"]), form.cleaned_data["reason"], actor=request.user
    ):
        messages.success(request, f"{found}: {form.cleaned_data['state']}. The team was notified.")
    else:
        messages.info(request, "Nothing has changed.")
    return redirect("organizers:registrations")
