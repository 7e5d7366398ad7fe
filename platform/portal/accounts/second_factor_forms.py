"""The forms that take a code of an authenticator app, each code once.

allauth forgets a used code after one period, and a code is valid for as long as the tolerance allows.
"""

import hashlib

from allauth.mfa import app_settings
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.cache import cache
from typing_extensions import override


class LoginCodeForm(AuthenticateForm):  # type: ignore[misc]
    """The code after the password."""

    @override
    def clean_code(self) -> str:
        return _used_once(self.user, super().clean_code())


class ConfirmationCodeForm(ReauthenticateForm):  # type: ignore[misc]
    """The code before a change."""

    @override
    def clean_code(self) -> str:
        return _used_once(self.user, super().clean_code())


def _used_once(user: AbstractBaseUser, code: str) -> str:
    """Return the code, unless it was used while it was valid. Raises `ValidationError`."""
    valid_for_s = app_settings.TOTP_PERIOD * (2 * app_settings.TOTP_TOLERANCE + 1)
    digest = hashlib.sha256(f"{user.pk} {code}".encode()).hexdigest()
    if not cache.add(f"used-second-factor-{digest}", True, timeout=valid_for_s):
        raise get_adapter().validation_error("incorrect_code")
    return code
