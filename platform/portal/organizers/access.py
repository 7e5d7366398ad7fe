"""Who may use the organizers' desk."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.accounts.requests import UserRequest
from portal.accounts.staff import HINT

DESK = "challenge.organize"
SAFE = ("GET", "HEAD")
POST = ("POST",)
FORM = (*SAFE, *POST)

View = Callable[..., HttpResponseBase]


def for_organizers(*permissions: str, methods: Sequence[str] = SAFE) -> Callable[[View], View]:
    """Return a decorator: a view for staff with a second factor, the desk's permission and these; of these methods."""

    def decorate(view: View) -> View:
        @wraps(view)
        @require_http_methods(list(methods))
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
