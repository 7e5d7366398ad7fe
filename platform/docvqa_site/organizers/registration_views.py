"""Registrations of teams, which organizers of their tracks read, admit and decline."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import RegistrationState, TeamRegistration
from docvqa_site.challenge.registering import decide
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.organizers.access import POST, for_organizers
from docvqa_site.organizers.forms import RegistrationDecisionForm
from docvqa_site.organizers.registrations import registrations_for
from docvqa_site.ui.paging import page_of

PAGE_LENGTH = 50


@for_organizers("challenge.change_track")
def registrations(request: UserRequest) -> HttpResponseBase:
    """List the registrations, those that wait first; with `track` in the address, those for one track."""
    slug = request.GET.get("track", "")
    track = get_object_or_404(organized_tracks(request.user), slug=slug) if slug else None
    found = registrations_for(request.user)
    page = page_of(found.filter(track=track) if track else found, PAGE_LENGTH, request.GET.get("page"))
    query = f"track={slug}&" if track else ""
    return render(request, "organizers/registrations.html", {"page": page, "track": track, "query": query})


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
    return redirect(f"{reverse('organizers:registrations')}?{request.GET.urlencode()}")
