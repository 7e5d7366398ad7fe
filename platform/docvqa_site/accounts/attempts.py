"""How often somebody may guess a password or a code, without one person keeping another out.

Failures count for the account and the visitor's network together, and loosely for the account alone, which limits who
guesses from many networks. A browser in which the person has logged in before has a signed cookie and counts on its
own: whatever others try, it gets in. So does a passkey, which nobody can guess and which isn't counted.
"""

import secrets
from typing import Any

from allauth.core.internal import ratelimit
from allauth.core.internal.ratelimit import RateLimitUsage, get_ip
from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

SALT = "docvqa_site.accounts.device"
DEVICE_DAYS = 180
# Where the session has what a cookie will say after the login, for whoever has just reset the password by mail.
RESET = "device_after_reset"


def count_attempt(request: HttpRequest, email: str, what: str) -> RateLimitUsage | None:
    """Count an attempt at `what`, "password" or "code"; return what takes it back, or None if there were too many."""
    usages = []
    for action, key in _counters(request, email, what):
        usage = ratelimit.consume(request, app="allauth.account", action=action, key=key)
        if usage is None:
            return None
        usages += usage.usage
    return RateLimitUsage(usage=usages)


def forget_attempts(request: HttpRequest, email: str) -> None:
    """Reset the counters of a person who has reset the password by email; their browser is known from now on."""
    request.session[RESET] = _signed(email)
    for action, key in _counters(request, email, "password"):
        ratelimit.clear(request, app="allauth.account", action=action, key=key)


def remember_device(response: HttpResponse, email: str) -> None:
    """Let the browser count on its own from now on when it logs in as this person."""
    response.set_cookie(
        _cookie(email),
        _signed(email),
        max_age=DEVICE_DAYS * 24 * 3600,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _counters(request: HttpRequest, email: str, what: str) -> list[tuple[str, str]]:
    """Return the limits that hold, of `ACCOUNT_RATE_LIMITS`, each with what is counted."""
    email = email.lower()
    if device := _device(request, email):
        return [("attempt_device", f"{what} {device} {email}")]
    return [("attempt", f"{what} {get_ip(request)} {email}"), ("attempt_account", f"{what} {email}")]


def _device(request: HttpRequest, email: str) -> str:
    """Return the name of the browser, if the person has logged in with it or has reset the password in it."""
    for value in (request.COOKIES.get(_cookie(email), ""), request.session.get(RESET, "")):
        try:
            name: str = TimestampSigner(salt=f"{SALT} {email}").unsign(value, max_age=DEVICE_DAYS * 24 * 3600)
        except BadSignature:
            continue
        return name
    return ""


def _signed(email: str) -> str:
    return TimestampSigner(salt=f"{SALT} {email.lower()}").sign(secrets.token_urlsafe(12))


def _cookie(email: str) -> str:
    """Return the cookie's name. Each account has its own, which doesn't show whose it is."""
    digest: Any = salted_hmac(SALT, email.lower(), algorithm="sha256")
    return f"device-{digest.hexdigest()[:16]}"
