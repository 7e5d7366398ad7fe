"""Who comes into the administration: organizers with a second factor, and none who organize single tracks.

Those who have no second factor are sent to the page that sets one up.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

HINT = "Organizers log in with a second factor. Set one up to open the admin site."


class RequireSecondFactor:
    """Middleware before the administration. Elsewhere a permission is missing instead; see `User.has_perm`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _args: Any, _options: Any
    ) -> HttpResponse | None:
        """Redirect staff without a second factor; everybody else is for the administration to judge."""
        match = request.resolver_match
        if match is None or "admin" not in match.app_names or match.url_name == "logout":
            return None
        if not request.user.is_authenticated:
            return None
        if request.user.organizes_single_tracks:
            raise PermissionDenied
        if not request.user.lacks_second_factor:
            return None
        messages.warning(request, HINT)
        return redirect("mfa_index")
