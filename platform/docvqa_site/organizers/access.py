"""Who may use the organizers' desk."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.submissions.selectors import competes

DESK = "challenge.organize"
# What closing a phase needs.
CLOSING = ("challenge.change_track", "submissions.view_submission")
SAFE = ("GET", "HEAD")
POST = ("POST",)
FORM = (*SAFE, *POST)

View = Callable[..., HttpResponseBase]


def organized_phase(organizer: User, slug: str, phase_id: int) -> Phase:
    """Return a phase of a public track that the organizer organizes. Raises `Http404` of any other.

    Raises `PermissionDenied` if they compete in the track.
    """
    tracks = organized_tracks(organizer).filter(slug=slug, is_draft=False)
    found: Phase = get_object_or_404(
        Phase.objects.select_related("track"), track__in=tracks.order_by(), pk=phase_id
    )
    reject_competitor(organizer, found.track)
    return found


def reject_competitor(organizer: User, track: Track) -> None:
    """Raise `PermissionDenied` if the organizer competes in the track: nobody changes the rules that judge them."""
    if competes(organizer, track):
        raise PermissionDenied(
            f"You compete in {track}, so only other organizers can change its rules, phases and people."
        )


def for_organizers(
    *permissions: str, methods: Sequence[str] = SAFE, of_every_track: bool = False
) -> Callable[[View], View]:
    """Return a decorator: a view for staff with a second factor, the desk's permission and these; of these methods.

    One `of_every_track` is closed to organizers of single tracks.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        @require_http_methods(list(methods))
        @never_cache
        @login_required
        def checked(request: UserRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
            if request.user.lacks_second_factor:
                messages.warning(
                    request,
                    "Organizers log in with a second factor. Set one up to open the organizers' desk.",
                )
                return redirect("mfa_index")
            if not request.user.has_perms((DESK, *permissions)):
                raise PermissionDenied
            if of_every_track and request.user.organizes_single_tracks:
                raise PermissionDenied
            return view(request, *arguments, **named)

        return checked

    return decorate
