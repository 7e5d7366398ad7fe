"""Asking organizers for their password and for a code again, before they give or take somebody's rights."""

import time
from urllib.parse import urlencode

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import suspend_request
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

PASSWORD = "reauthenticate"  # noqa: S105  (what allauth calls this way to confirm)


def ask_again(request: HttpRequest, *, keeps_form: bool = True) -> HttpResponse | None:
    """Return the page that asks for what wasn't given in the last minutes, password or code; None if both were.

    The request continues once both are given. Without `keeps_form` it begins again as a page to fill in: a form with a
    password isn't stored in the session.
    """
    given = _given_lately(request)
    for way in get_adapter().get_reauthentication_methods(request.user):
        if ("password" if way["id"] == PASSWORD else "mfa") in given:
            continue
        if keeps_form:
            response: HttpResponse = suspend_request(request, way["url"])
            return response
        return redirect(f"{way['url']}?{urlencode({'next': request.get_full_path()})}")
    return None


def _given_lately(request: HttpRequest) -> set[str]:
    """Return what the person has confirmed with since they logged in: "password", "mfa"."""
    now = time.time()
    return {
        record["method"]
        for record in get_authentication_records(request, request.user)
        if record.get("reauthenticated") and now - record["at"] < app_settings.REAUTHENTICATION_TIMEOUT
    }
