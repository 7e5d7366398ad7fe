"""Queries about people."""

from allauth.account.models import EmailAddress
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import HttpRequest

from docvqa_site.accounts.models import ApiToken, User


def organizer_of(request: HttpRequest) -> User:
    """Return who uses the administration, which lets nobody anonymous in."""
    assert isinstance(request.user, User)  # noqa: S101
    return request.user


def active_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the user's tokens that are not revoked."""
    return user.api_tokens.filter(revoked_at__isnull=True)


def is_reviewer(user: User | AnonymousUser) -> bool:
    """Return whether `user` is one of the organizers who decide on privacy proofs."""
    return user.has_perm("reviews.review_proofs")


def owns_verified_address(user: User, email: str) -> bool:
    """Return whether `user` has shown that mail to `email` reaches them."""
    return bool(EmailAddress.objects.filter(user=user, email__iexact=email, verified=True).exists())


def all_addresses(user: User) -> list[str]:
    """Return the addresses that the site has of `user`, in lower case."""
    others = EmailAddress.objects.filter(user=user).values_list("email", flat=True)
    return sorted({user.email.lower(), *(address.lower() for address in others)})


def user_by_address(email: str) -> User | None:
    """Return whose account has this address, as the login or besides."""
    by_login = User.objects.filter(email__iexact=email).first()
    return by_login or User.objects.filter(emailaddress__email__iexact=email).first()


def verified_addresses(user: User) -> list[str]:
    """Return the addresses that `user` has shown that mail reaches them at."""
    return list(EmailAddress.objects.filter(user=user, verified=True).values_list("email", flat=True))
