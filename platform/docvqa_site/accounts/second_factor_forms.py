"""The forms that take a code of an authenticator app, each code once.

allauth forgets a used code after one period, and a code is valid for as long as the tolerance allows.
"""

import hashlib
from typing import Any

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.core import context
from allauth.mfa import app_settings
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.core.cache import cache

from docvqa_site.accounts.attempts import count_attempt


class Digits:
    """A form whose code is typed on a keyboard of digits; recovery codes consist of digits as well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["inputmode"] = "numeric"  # type: ignore[attr-defined]


class UsedOnce(Digits):
    """A form whose code is rejected if it was used while it was valid, or after too many wrong ones.

    The code is all that its page asks for, so its field has the focus.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["autofocus"] = True  # type: ignore[attr-defined]

    def clean_code(self) -> str:
        usage = count_attempt(context.request, self.user.email, "code")  # type: ignore[attr-defined]
        if usage is None:
            raise get_account_adapter().validation_error("too_many_login_attempts")
        code: str = super().clean_code()  # type: ignore[misc]
        usage.rollback()
        valid_for_s = app_settings.TOTP_PERIOD * (2 * app_settings.TOTP_TOLERANCE + 1)
        digest = hashlib.sha256(f"{self.user.pk} {code}".encode()).hexdigest()  # type: ignore[attr-defined]
        if not cache.add(f"used-second-factor-{digest}", True, timeout=valid_for_s):
            raise get_adapter().validation_error("incorrect_code")
        return code


class LoginCodeForm(UsedOnce, AuthenticateForm):  # type: ignore[misc]
    """The code after the password."""


class ConfirmationCodeForm(UsedOnce, ReauthenticateForm):  # type: ignore[misc]
    """The code before a change."""


class FirstCodeForm(Digits, ActivateTOTPForm):  # type: ignore[misc]
    """The code that shows that the app has the secret."""
