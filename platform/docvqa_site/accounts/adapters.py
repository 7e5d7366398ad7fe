"""What allauth does differently here: whom failed attempts to log in lock out, and how second factors are stored."""

import base64
import hashlib
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailConfirmation, EmailConfirmationHMAC
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from typing_extensions import override

from docvqa_site.accounts.attempts import count_attempt, forget_attempts, remember_device


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Counts failed attempts so that nobody is locked out by what others try; see `docvqa_site.accounts.attempts`.

    What the visitor says in the header `Host`, of which the port may be anything, changes neither that nor the links in
    mails.
    """

    @override
    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        # allauth takes it back when the password is right.
        self._login_failed_rl_usage = count_attempt(request, str(credentials.get("email", "")), "password")
        if self._login_failed_rl_usage is None:
            raise self.validation_error("too_many_login_attempts")

    @override
    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        forget_attempts(request, str(credentials.get("email", "")))

    @override
    def format_email_subject(self, subject: str) -> str:
        """Return allauth's own subjects, such as "Password Changed", as the site writes all others."""
        return str(super().format_email_subject(subject.capitalize()))

    @override
    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **options: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **options)
        remember_device(response, user.get_username())
        return response

    @override
    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return where a log-in leads that asked for no page: organizers to their desk, reviewers to their queue.

        Reviewers with a team of their own begin there, as members do. Both pages lead whoever lacks a second factor to
        where it is set up, which is why it isn't asked here whether they have one.
        """
        user = request.user
        rights = user.get_all_permissions() if user.is_staff else set()
        if "challenge.organize" in rights:
            return reverse("organizers:desk")
        if "reviews.review_proofs" in rights and not hasattr(user, "membership"):
            return reverse("reviews:queue")
        return str(super().get_login_redirect_url(request))

    @override
    def get_reset_password_from_key_url(self, key: str) -> str:
        return _on_site(super().get_reset_password_from_key_url(key))

    @override
    def get_email_confirmation_url(
        self, request: HttpRequest, emailconfirmation: EmailConfirmation | EmailConfirmationHMAC
    ) -> str:
        return _on_site(super().get_email_confirmation_url(request, emailconfirmation))


def _on_site(url: str) -> str:
    """Return the address of the same page under the site's own name."""
    return str(settings.SITE_URL + urlsplit(url).path)


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Encrypts the secrets of authenticator apps and recovery codes, so that a copy of the database lacks them."""

    @override
    def generate_authenticator_name(self, user: AbstractBaseUser, type: Authenticator.Type) -> str:
        return f"Passkey {Authenticator.objects.filter(user_id=user.pk, type=type).count() + 1}"

    @override
    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    @override
    def decrypt(self, encrypted_text: str) -> str:
        return _cipher().decrypt(encrypted_text.encode()).decode()


def _cipher() -> MultiFernet:
    """Return the cipher of the site's key; what was encrypted under an earlier key can still be read."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    # The label is part of what is stored: a site with other words here could read none of it.
    derived = [hashlib.sha256(b"portal.accounts.second-factor " + key.encode()).digest() for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])
