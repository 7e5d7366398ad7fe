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
    return user.is_staff and user.has_perm("reviews.review_proofs")


def owns_verified_address(user: User, email: str) -> bool:
    """Return whether `user` has shown that mail to `email` reaches them."""
    return bool(EmailAddress.objects.filter(user=user, email__iexact=email, verified=True).exists())


def verified_addresses(user: User) -> list[str]:
    """Return the addresses that `user` has shown that mail reaches them at."""
    return list(EmailAddress.objects.filter(user=user, verified=True).values_list("email", flat=True))
