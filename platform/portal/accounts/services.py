"""Changes to people and their API tokens."""

from datetime import timedelta

from allauth.account.models import EmailAddress
from django.db import transaction
from django.utils import timezone

from portal.accounts.models import ApiToken, User
from portal.audit.models import record

LAST_USE_PRECISION = timedelta(minutes=1)


@transaction.atomic
def create_token(user: User, label: str) -> tuple[ApiToken, str]:
    """Create an API token; the second value is the secret, which can't be read again."""
    token, secret = ApiToken.issue(user, label)
    record(user, "token.created", token, label=label)
    return token, secret


@transaction.atomic
def revoke_token(token: ApiToken, *, actor: User) -> None:
    """End a token's use at once; may be called again."""
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
    if revoked:
        record(actor, "token.revoked", token, label=token.label)


def authenticate_token(secret: str) -> User | None:
    """Return the user whose token `secret` is; None when it is unknown or revoked, or its user is inactive.

    The token is looked up by its digest, so the time that takes reveals nothing about the secret.
    """
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=ApiToken.digest_of(secret), revoked_at__isnull=True, user__is_active=True)
        .first()
    )
    if token is None:
        return None
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at >= LAST_USE_PRECISION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token.user


@transaction.atomic
def ensure_user(
    email: str, *, name: str, password: str | None = None, staff: bool = False, superuser: bool = False
) -> tuple[User, bool]:
    """Create the account of `email`, or update it; the second value says whether it is new.

    Rights are only ever added. Without a password a new account gets none, an old one's stays.
    """
    user, created = User.objects.select_for_update().get_or_create(email=email.lower())
    user.name = name
    user.is_staff |= staff
    user.is_superuser |= superuser
    if password is not None:
        user.set_password(password)
    elif created:
        user.set_unusable_password()
    user.save()
    vouch_for_address(user)
    record(
        None,
        "user.created" if created else "user.updated",
        user,
        staff=user.is_staff,
        superuser=user.is_superuser,
    )
    return user, created


@transaction.atomic
def vouch_for_address(user: User) -> None:
    """Mark the user's address as verified, as when an organizer made the account."""
    EmailAddress.objects.update_or_create(
        user=user, email=user.email.lower(), defaults={"verified": True, "primary": True}
    )
