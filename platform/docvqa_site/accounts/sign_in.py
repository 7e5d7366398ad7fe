"""Signing in by GitHub or ORCID, where the site is configured for it.

An account of a provider opens the account here that its owner has linked it to after logging in, and no other: what a
provider says of an email address never opens or joins an existing account. Who has none here signs up with a form, and
chooses a password, because changes of security ask for it; an address counts as confirmed only if the provider says so.
"""

from typing import Any

from allauth.account.forms import PasswordField
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.forms import SignupForm
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import Provider
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.http import Http404, HttpRequest
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.accounts.signup import ADVICE, EvenTime

NAMES = {"github": "GitHub", "orcid": "ORCID"}


def offered_providers() -> dict[str, str]:
    """Return the names of the providers that the site is configured for, by their ids."""
    return {key: name for key, name in NAMES.items() if key in settings.SOCIALACCOUNT_PROVIDERS}


def name_there(account: SocialAccount) -> str:
    """Return what the account is called at its provider."""
    return str(account.extra_data.get("login") or account.uid)


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Keeps of what a provider says only what the site shows."""

    @override
    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Provider:
        try:
            return super().get_provider(request, provider, client_id)
        except SocialApp.DoesNotExist:
            raise Http404("The site isn't configured for this provider.") from None

    @override
    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        account = sociallogin.account
        account.extra_data = {key: account.extra_data[key] for key in ("login",) if key in account.extra_data}
        # One address per person; the others that the provider knows are none of the site's business.
        sociallogin.email_addresses = [one for one in sociallogin.email_addresses if one.primary][:1]
        if sociallogin.is_existing:
            account.save(update_fields=["extra_data"])

    @override
    def populate_user(
        self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]
    ) -> AbstractBaseUser:
        user: User = super().populate_user(request, sociallogin, data)
        parts = (data.get("first_name"), data.get("last_name"))
        user.name = data.get("name") or " ".join(part for part in parts if part)
        return user

    @override
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> AbstractBaseUser:
        # Only the address that the person chose counts; another one that is confirmed would let that pass as well.
        chosen = form.cleaned_data["email"].lower() if form else ""
        sociallogin.email_addresses = [
            one for one in sociallogin.email_addresses if one.email.lower() == chosen
        ]
        user: AbstractBaseUser = super().save_user(request, sociallogin, form)
        return user

    @override
    def get_signup_form_initial_data(self, sociallogin: SocialLogin) -> dict[str, Any]:
        return {**super().get_signup_form_initial_data(sociallogin), "name": sociallogin.user.name}


class LinkedSignupForm(EvenTime, SignupForm):  # type: ignore[misc]
    """Signing up with a provider's account: name and address as it has them, to be changed, and a password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"] = PasswordField(
            label="Password", autocomplete="new-password", help_text=ADVICE
        )

    def clean_password1(self) -> str:
        password: str = self.cleaned_data["password1"]
        validate_password(password, User(email=self.data.get("email", ""), name=self.data.get("name", "")))
        return password
