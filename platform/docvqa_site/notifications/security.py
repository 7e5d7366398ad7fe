"""Changes to an account's security, shown to its owner; allauth mails them, and `accounts` sends the others."""

from typing import Any

from allauth.account.signals import email_changed, password_changed, password_reset
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.signals import social_account_added, social_account_removed
from django.dispatch import Signal, receiver

from docvqa_site.accounts.models import User
from docvqa_site.accounts.signals import security_changed
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import add_notifications, notify

ADVICE = "If this wasn't you, reset your password and contact the organizers."


@receiver(security_changed)
def notify_by_mail(user: User, subject: str, text: str, **_: Any) -> None:
    notify([user], Kind.SECURITY, subject, text.split("\n\n"))


@receiver(email_changed)
def show_new_address(user: User, from_email_address: Any, **_: Any) -> None:
    """Show that the address is another one; the first address of an account is no change."""
    if from_email_address is not None:
        _show(user, f"Your email address was changed to {user.email}")


@receiver([password_changed, password_reset, authenticator_added, authenticator_removed, authenticator_reset])
def show_new_credentials(signal: Signal, user: User, **_: Any) -> None:
    what = "password was" if signal in (password_changed, password_reset) else "second factors were"
    _show(user, f"Your {what} changed")


@receiver([social_account_added, social_account_removed])
def show_linked_accounts(
    sociallogin: SocialLogin | None = None, socialaccount: SocialAccount | None = None, **_: Any
) -> None:
    account = sociallogin.account if sociallogin else socialaccount
    if account is not None:
        _show(account.user, "Your linked accounts were changed")


def _show(user: User, subject: str) -> None:
    add_notifications([user], Kind.SECURITY, subject, [ADVICE])
