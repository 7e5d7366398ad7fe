"""The forms to sign up, log in, or give an address or a password.

Apart from `forms`, which allauth imports to build these.
"""

from typing import Any, ClassVar

from allauth.account.forms import (
    AddEmailForm,
    ChangePasswordForm,
    LoginForm,
    ReauthenticateForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SignupForm,
)
from django import forms
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from typing_extensions import override

from docvqa_site.accounts.selectors import active_tokens
from docvqa_site.accounts.services import revoke_all_tokens, unlink_accounts

EMAIL = "Email address"
NEW_PASSWORD = {"password1": "New password", "password2": "New password (again)"}
ADVICE = (
    "At least 8 characters. Not a common password, not only digits, and nothing like your name or address."
)


class SiteLabels:
    """A form of allauth that names its fields as the rest of the site does."""

    labels: ClassVar[dict[str, str]] = {"email": EMAIL}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in self.labels.items():
            self.fields[name].label = label  # type: ignore[attr-defined]
        for name, one in self.fields.items():  # type: ignore[attr-defined]
            one.widget.attrs.pop("placeholder", None)
            if name == "password1":
                one.help_text = ADVICE
            if name in ("password", "oldpassword"):
                # The pages have a link for those who have forgotten it, where it isn't in the way to the field.
                one.help_text = ""


class LoginWithPasswordForm(SiteLabels, LoginForm):  # type: ignore[misc]
    labels = {"login": EMAIL, "remember": "Keep me logged in"}

    @override
    def clean(self) -> Any:
        try:
            return super().clean()
        except forms.ValidationError:
            # Which of the two is wrong stays unsaid, so both are marked.
            for name in ("login", "password"):
                self.fields[name].widget.attrs["aria-invalid"] = "true"
            raise


class PasswordAgainForm(SiteLabels, ReauthenticateForm):  # type: ignore[misc]
    """The password before a change. It is all that its page asks for, so its field has the focus."""

    labels: ClassVar[dict[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].widget.attrs["autofocus"] = True


class ForgottenPasswordForm(SiteLabels, ResetPasswordForm):  # type: ignore[misc]
    """Where to send the link that resets the password."""


class NewAddressForm(SiteLabels, AddEmailForm):  # type: ignore[misc]
    """The address that replaces the present one."""


class PasswordFromLinkForm(SiteLabels, ResetPasswordKeyForm):  # type: ignore[misc]
    """A password in place of a forgotten one."""

    labels = NEW_PASSWORD


class NewPasswordForm(SiteLabels, ChangePasswordForm):  # type: ignore[misc]
    """A password in place of another, which somebody else may have known: what they may have made ends with it."""

    labels = {"oldpassword": "Current password", **NEW_PASSWORD}

    end_access = forms.BooleanField(
        required=False, initial=True, label="Also revoke my API tokens and unlink my linked accounts"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tokens, linked = active_tokens(self.user).count(), self.user.socialaccount_set.count()
        if not tokens + linked:
            del self.fields["end_access"]
            return
        self.fields["end_access"].help_text = (
            f"You have {tokens} API token{pluralize(tokens)} and {linked} linked account{pluralize(linked)}. Keep them "
            "only if you are sure that nobody else has used your account."
        )

    @transaction.atomic
    def save(self) -> None:
        super().save()
        if self.cleaned_data.get("end_access"):
            revoke_all_tokens(self.user, because="password changed")
            unlink_accounts(self.user, because="password changed")


class EvenTime(SiteLabels):
    """A form to sign up that takes as long for an address that has an account as for a new one."""

    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:  # type: ignore[attr-defined]
            make_password(self.cleaned_data["password1"])  # type: ignore[attr-defined]
        return super().try_save(request)  # type: ignore[misc]


class NewAccountForm(EvenTime, SignupForm):  # type: ignore[misc]
    """Reports all that is wrong at once."""

    @override
    def clean(self) -> Any:
        data = super().clean()
        # allauth compares the two only once the first is a good password.
        entered = [self.data.get(self.add_prefix(name)) for name in ("password1", "password2")]
        if "password1" in self.errors and entered[0] != entered[1]:
            self.add_error("password2", "You must type the same password each time.")
        return data
