"""The sign-up form. Apart from `forms`, which allauth imports to build the class below."""

from typing import Any

from allauth.account.forms import SignupForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest
from typing_extensions import override


class NewAccountForm(SignupForm):  # type: ignore[misc]
    """Takes as long for an address that has an account as for a new one."""

    @override
    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])
        return super().try_save(request)
