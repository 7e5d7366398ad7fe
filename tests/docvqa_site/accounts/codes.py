"""Codes of an authenticator app, as RFC 6238 defines them, and logging in with them."""

import base64
import hmac
import struct
import time
from typing import Any

from django.test import Client
from django.urls import reverse

from docvqa_site.accounts.models import User
from tests.docvqa_site.factories import TOTP_SECRET


def code_of(secret: str = TOTP_SECRET, moment: float | None = None) -> str:
    """The six digits that an app with this secret shows."""
    counter = int((time.time() if moment is None else moment) // 30)
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", counter), "sha1")
    offset = digest[-1] & 15
    (number,) = struct.unpack(">I", digest[offset : offset + 4])
    return f"{(number & 0x7FFFFFFF) % 1_000_000:06}"


def confirm_again(client: Client, password: str) -> Any:
    """Give the password and a code once more; returns the page that these lead to."""
    client.post(reverse("account_reauthenticate"), {"password": password})
    return client.post(reverse("mfa_reauthenticate"), {"code": code_of()}, follow=True)


def log_in(client: Client, user: User, password: str) -> str:
    """Log in by form, with the code if the page asks for it; returns the address that this ends at."""
    response = client.post(reverse("account_login"), {"login": user.email, "password": password}, follow=True)
    if response.redirect_chain and response.redirect_chain[-1][0] == reverse("mfa_authenticate"):
        response = client.post(reverse("mfa_authenticate"), {"code": code_of()}, follow=True)
    return str(response.request["PATH_INFO"])
