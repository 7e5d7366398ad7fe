"""What follows from a change of how somebody logs in: an audit entry, and the end of sessions.

allauth mails the person about each, at the old address if that changed.
"""

from typing import Any

from allauth.account.signals import email_changed, password_changed, password_reset, user_signed_up
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.signals import social_account_added, social_account_removed
from django.dispatch import receiver
from django.http import HttpRequest

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import end_sessions, note_unlinked, revoke_all_tokens, unlink_accounts
from docvqa_site.audit.models import personal, record


@receiver(password_reset)
def after_password_reset(user: User, **_: Any) -> None:
    """End tokens and linked accounts as well: a password is reset when somebody else may know it."""
    record(user, "user.password_reset", user)
    revoke_all_tokens(user, because="password reset")
    unlink_accounts(user, because="password reset")


@receiver(password_changed)
def after_password_change(user: User, **_: Any) -> None:
    """Record it; Django ends the other sessions."""
    record(user, "user.password_changed", user)


@receiver(email_changed)
def after_email_change(request: HttpRequest, user: User, from_email_address: Any, **_: Any) -> None:
    """End tokens and other sessions: who has the address can reset the password from now on."""
    # The first address of a new account is no change.
    if from_email_address is None:
        return
    before, after = (personal(address, user) for address in (from_email_address.email, user.email))
    record(user, "user.email_changed", user, before=before, after=after)
    revoke_all_tokens(user, because="email address changed")
    end_sessions(user, but=request)


@receiver(authenticator_added)
def after_second_factor(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    """End the sessions that began without it."""
    record(user, "user.second_factor_added", user, type=authenticator.type)
    if authenticator.type != Authenticator.Type.RECOVERY_CODES:
        end_sessions(user, but=request)


@receiver([social_account_added, user_signed_up])
def after_linking(sociallogin: SocialLogin | None = None, **_: Any) -> None:
    """Record it, also of whoever signs up with an account of a provider; an ORCID account shows whose iD it is."""
    if sociallogin is None:
        return
    account, user = sociallogin.account, sociallogin.account.user
    record(user, "user.sign_in_linked", user, provider=account.provider, uid=personal(account.uid, user))
    if account.provider == "orcid":
        User.objects.filter(pk=user.pk).update(orcid=account.uid, orcid_verified=True)


@receiver(social_account_removed)
def after_unlinking(socialaccount: SocialAccount, **_: Any) -> None:
    note_unlinked(socialaccount)


@receiver(authenticator_removed)
def after_removal(user: User, authenticator: Authenticator, **_: Any) -> None:
    record(user, "user.second_factor_removed", user, type=authenticator.type)


@receiver(authenticator_reset)
def after_new_recovery_codes(user: User, **_: Any) -> None:
    record(user, "user.recovery_codes_renewed", user)
