"""Everybody who reviews or organizes, in any track, and who is invited to."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from docvqa_site.accounts.confirming import ask_again
from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import user_by_address
from docvqa_site.challenge.models import StaffInvitation, StaffRole, Track
from docvqa_site.challenge.selectors import organized_tracks, organizers_of_all_tracks
from docvqa_site.organizers.access import FORM, POST, for_organizers
from docvqa_site.organizers.setup.forms import AnyInvitationForm
from docvqa_site.organizers.setup.people import (
    COMPETES,
    GROUP_OF,
    Member,
    competed_in,
    end_role,
    has_role,
    invite,
    members,
    pending,
)
from docvqa_site.organizers.setup.people import withdraw_invitation as withdraw
from docvqa_site.reviews.selectors import assignments, reviewers

ROLES = {StaffRole.REVIEWER: "a reviewer", StaffRole.ALL_TRACKS: "an organizer of all tracks"}


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
        "of_all_tracks": members(organizers_of_all_tracks(), StaffRole.ALL_TRACKS),
        "reviewers": members(reviewers(include_superusers=False), StaffRole.REVIEWER),
        "assigned": set(assignments().values_list("reviewer", flat=True)),
        "tracks": tracks,
        "of_one_track": _of_one_track(tracks),
        "invitations": StaffInvitation.objects.filter(accepted_at=None).select_related("track"),
        "form": form if request.user.is_superuser else None,
    }
    return render(request, "organizers/people.html", context)


def _of_one_track(tracks: QuerySet[Track]) -> list[tuple[Track, list[Member]]]:
    """Return the tracks, each with those who organize it alone."""
    found = list(tracks.prefetch_related("organizers"))
    people = {person.pk: person for track in found for person in track.organizers.all()}
    known = {one.person.pk: one for one in members(people.values(), StaffRole.ORGANIZER)}
    return [(track, [known[person.pk] for person in track.organizers.all()]) for track in found]


@for_organizers("challenge.change_track", methods=POST, of_every_track=True)
def withdraw_invitation(request: UserRequest, staff_invitation_id: int) -> HttpResponseBase:
    """Make the link of an invitation useless; only superusers, as they alone invite."""
    found = _pending(request, staff_invitation_id)
    withdraw(found, actor=request.user)
    messages.success(request, f"The invitation of {found.email} was withdrawn.")
    return back(request, found.track)


@for_organizers("challenge.change_track", methods=POST, of_every_track=True)
def resend_invitation(request: UserRequest, staff_invitation_id: int) -> HttpResponseBase:
    """Replace an invitation by a new one, which expires later."""
    found = _pending(request, staff_invitation_id)
    send_invitation(request, found.track, found.email, StaffRole(found.role))
    return back(request, found.track)


@for_organizers("challenge.change_track", methods=POST, of_every_track=True)
def end(request: UserRequest, role: str, user_id: int) -> HttpResponseBase:
    """End somebody's role in every track; only superusers, as they alone give it."""
    if not request.user.is_superuser:
        raise PermissionDenied
    if role not in GROUP_OF:
        raise Http404("no such role")
    given = StaffRole(role)
    held = User.objects.filter(groups__name=GROUP_OF[given], is_superuser=False)
    person = get_object_or_404(held, pk=user_id)
    if asked := ask_again(request):
        return asked
    end_role(given, person, actor=request.user)
    messages.success(request, f"{person} is no longer {ROLES[given]}.")
    return redirect("organizers:people")


def _pending(request: UserRequest, staff_invitation_id: int) -> StaffInvitation:
    if not request.user.is_superuser:
        raise PermissionDenied
    open_ones = StaffInvitation.objects.select_related("track").filter(accepted_at=None)
    found: StaffInvitation = get_object_or_404(open_ones, pk=staff_invitation_id)
    return found


def back(request: UserRequest, track: Track) -> HttpResponseBase:
    """Lead back to the page of everybody, or to that of the track, where the button was."""
    if request.GET.get("from") == "people":
        return redirect("organizers:people")
    other = organized_tracks(request.user).filter(slug=request.GET.get("from", "")).first()
    return redirect("organizers:setup_step", (other or track).slug, "people")


def send_invitation(request: UserRequest, track: Track, email: str, role: StaffRole) -> None:
    """Invite somebody, and say so; with a warning if they compete. Nobody is invited to a role that they have."""
    person = user_by_address(email)
    if person and has_role(person, role, track):
        words = StaffInvitation(track=track, role=role).role_in_words
        messages.info(request, f"{person} is already {words}.")
        return
    is_again = pending(email, role, track).exists()
    sent = invite(track, email, role, by=request.user)
    text = f"We've sent an invitation to {sent.email}."
    messages.success(request, f"{text} The link in the earlier one no longer works." if is_again else text)
    if competed := competed_in(person, sent):
        names = ", ".join(map(str, competed))
        messages.warning(request, f"A team of {sent.email} has submissions in {names}. {COMPETES}")
