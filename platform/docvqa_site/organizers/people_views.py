"""Everybody who reviews or organizes, in any track, and who is invited to."""

from django.http import HttpResponseBase
from django.shortcuts import render

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import StaffInvitation
from docvqa_site.challenge.selectors import organized_tracks, organizers_of_all_tracks
from docvqa_site.organizers.access import for_organizers
from docvqa_site.reviews.selectors import reviewers


@for_organizers("challenge.change_track", of_every_track=True)
def people(request: UserRequest) -> HttpResponseBase:
    context = {
        "of_all_tracks": organizers_of_all_tracks(),
        "reviewers": reviewers(include_superusers=False),
        "tracks": organized_tracks(request.user).prefetch_related("organizers"),
        "invitations": StaffInvitation.objects.filter(accepted_at=None).select_related("track"),
    }
    return render(request, "organizers/people.html", context)
