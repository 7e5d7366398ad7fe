"""Who may use the organizers' desk, and whose submissions they see there."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache

from portal.accounts.models import User
from portal.accounts.requests import UserRequest
from portal.accounts.staff import HINT
from portal.submissions.models import Submission
from portal.submissions.selectors import competed_tracks

DESK = "challenge.organize"

View = Callable[..., HttpResponseBase]


def for_organizers(*permissions: str) -> Callable[[View], View]:
    """Return a decorator: a view for staff with the desk's permission and these, and with a second factor."""

    def decorate(view: View) -> View:
        @wraps(view)
        @never_cache
        @login_required
        def checked(request: UserRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
            if request.user.is_staff and request.user.lacks_second_factor:
                messages.warning(request, HINT)
                return redirect("mfa_index")
            if not request.user.is_staff or not request.user.has_perms((DESK, *permissions)):
                raise PermissionDenied
            return view(request, *arguments, **named)

        return checked

    return decorate


def judged_submissions(organizer: User) -> QuerySet[Submission]:
    """Return the submissions that the organizer may see and decide on: none of tracks in which they compete.

    Drafts are their team's alone.
    """
    submitted = Submission.objects.filter(submitted_at__isnull=False)
    return submitted.exclude(team__memberships__user=organizer).exclude(track__in=competed_tracks(organizer))
