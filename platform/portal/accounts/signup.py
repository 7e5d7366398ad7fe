"""The forms to sign up, log in or give an address. Apart from `forms`, which allauth imports to build these."""

from typing import Any

from allauth.account.forms import AddEmailForm, LoginForm, ResetPasswordForm, SignupForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest
from typing_extensions import override

EMAIL = "E-mail address"
ADVICE = (
    "At least 8 characters. Not a common password, not only digits, and nothing like your name or address."
)


class LoginWithPasswordForm(LoginForm):  # type: ignore[misc]
    """Names its fields as the rest of the site does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = EMAIL
        self.fields["remember"].label = "Keep me signed in"


class ForgottenPasswordForm(ResetPasswordForm):  # type: ignore[misc]
    """Names its field as the rest of the site does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = EMAIL


class NewAddressForm(AddEmailForm):  # type: ignore[misc]
    """Names its field as the rest of the site does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = EMAIL


class NewAccountForm(SignupForm):  # type: ignore[misc]
    """Takes as long for an address that has an account as for a new one, and reports all that is wrong at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = EMAIL
        self.fields["password1"].help_text = ADVICE

    @override
    def clean(self) -> Any:
        data = super().clean()
        # allauth compares the two only once the first is a good password.
        entered = [self.data.get(self.add_prefix(name)) for name in ("password1", "password2")]
        if "password1" in self.errors and entered[0] != entered[1]:
            self.add_error("password2", "You must type the same password each time.")
        return data

    @override
    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])
        return super().try_save(request)
