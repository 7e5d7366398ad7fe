"""Everybody who reviews or organizes, in any track, and who is invited to."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from django.shortcuts import redirect, render

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import user_by_address
from docvqa_site.challenge.models import StaffInvitation, StaffRole, Track
from docvqa_site.challenge.selectors import organized_tracks, organizers_of_all_tracks
from docvqa_site.organizers.access import FORM, for_organizers
from docvqa_site.organizers.setup.forms import AnyInvitationForm
from docvqa_site.organizers.setup.people import COMPETES, competed_in, invite
from docvqa_site.reviews.selectors import reviewers


@for_organizers("challenge.change_track", methods=FORM, of_every_track=True)
def people(request: UserRequest) -> HttpResponseBase:
    """Show everybody; a POST invites somebody, which gives rights, so only superusers do."""
    if request.method == "POST" and not request.user.is_superuser:
        raise PermissionDenied
    tracks = organized_tracks(request.user)
    form = AnyInvitationForm(request.POST or None, tracks)
    if request.method == "POST" and form.is_valid():
        send_invitation(request, **form.cleaned_data)
        return redirect("organizers:people")
    context = {
        "of_all_tracks": organizers_of_all_tracks(),
        "reviewers": reviewers(include_superusers=False),
        "tracks": tracks.prefetch_related("organizers"),
        "invitations": StaffInvitation.objects.filter(accepted_at=None).select_related("track"),
        "form": form if request.user.is_superuser else None,
    }
    return render(request, "organizers/people.html", context)


def send_invitation(request: UserRequest, track: Track, email: str, role: StaffRole) -> None:
    """Invite somebody, and say so; with a warning if they compete."""
    sent = invite(track, email, role, by=request.user)
    messages.success(request, f"We've sent an invitation to {sent.email}.")
    if competed := competed_in(user_by_address(sent.email), sent):
        names = ", ".join(map(str, competed))
        messages.warning(request, f"A team of {sent.email} has submissions in {names}. {COMPETES}")
