"""What is shown to somebody in particular is stored nowhere, neither by their browser nor by a proxy."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PRIVATE = "private, no-store"


class PrivatePages:
    """Middleware that marks as private what a visitor with a session gets, unless the view says how to cache it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        cookie = settings.SESSION_COOKIE_NAME
        # The cookie decides, not the session: reading that would make each response vary by cookie.
        if cookie in request.COOKIES or cookie in response.cookies:
            response.headers.setdefault("Cache-Control", PRIVATE)
        return response
