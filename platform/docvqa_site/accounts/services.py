"""Changes to people and their API tokens."""

import secrets
from datetime import timedelta

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.mfa.utils import decrypt, encrypt
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.groups import ORGANIZERS, REVIEWERS
from docvqa_site.accounts.models import TOKEN_DAYS, TOKEN_PREFIX, TRACK_ORGANIZERS, ApiToken, Scope, User
from docvqa_site.accounts.selectors import active_tokens
from docvqa_site.accounts.signals import security_changed
from docvqa_site.audit.models import personal, record
from docvqa_site.ui.names import clean_name
from evaluator.errors import ErrorCode, ProblemError

LAST_USE_PRECISION = timedelta(minutes=1)
MAX_TOKENS = 20
# Of an authenticator's data: the secret of an app, and what recovery codes are derived from.
ENCRYPTED_MEMBERS = ("secret", "seed")


@transaction.atomic
def create_token(
    user: User, label: str, *, scope: Scope = Scope.SUBMIT, days: int = TOKEN_DAYS
) -> tuple[ApiToken, str]:
    """Create an API token for so many days; the second value is the secret, which can't be read again.

    Raises `ProblemError` (`E_TOKEN_LIMIT`) for somebody with `MAX_TOKENS` valid ones.
    """
    secret, now = TOKEN_PREFIX + secrets.token_urlsafe(32), timezone.now()
    # Its lock makes requests that come at once wait for each other.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if (valid := active_tokens(user).filter(expires_at__gt=now).count()) >= MAX_TOKENS:
        raise ProblemError.of(
            ErrorCode.TOKEN_LIMIT, expected=f"at most {MAX_TOKENS} valid tokens", found=valid
        )
    token = ApiToken.objects.create(
        user=user,
        label=label,
        scope=scope,
        digest=ApiToken.digest_of(secret),
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    record(user, "token.created", token, label=personal(label, user), scope=scope, days=days)
    return token, secret


@transaction.atomic
def update_profile(user: User, *, name: str, orcid: str, shows_orcid: bool) -> User:
    """Change what others read of a person, and return them; the fields were validated. A new iD isn't verified."""
    current = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    fields = {"name": name, "orcid": orcid, "shows_orcid": shows_orcid}
    changed = {field: value for field, value in fields.items() if getattr(current, field) != value}
    for field, value in changed.items():
        setattr(current, field, value)
    if "orcid" in changed:
        current.orcid_verified = False
    if changed:
        current.save(update_fields=[*changed, "orcid_verified"])
        texts = {name: personal(str(changed[name]), user) for name in ("name", "orcid") if name in changed}
        record(user, "user.profile_changed", current, **(changed | texts))
    return current


@transaction.atomic
def revoke_token(token: ApiToken, *, actor: User) -> None:
    """End a token's use at once; may be called again."""
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
    if revoked:
        record(actor, "token.revoked", token, label=personal(token.label, token.user))


@transaction.atomic
def revoke_all_tokens(user: User, *, because: str) -> None:
    """End the use of all of a user's tokens, after which whoever read one can do nothing with it."""
    for token in user.api_tokens.filter(revoked_at__isnull=True):
        revoke_token(token, actor=user)
    record(user, "user.tokens_revoked", user, because=because)


@transaction.atomic
def unlink_accounts(user: User, *, because: str) -> None:
    """Let no account at a provider open this one any more; whoever knew the password may have linked theirs."""
    for account in SocialAccount.objects.filter(user=user):
        account.delete()
        note_unlinked(account, because=because)


def note_unlinked(account: SocialAccount, **details: str) -> None:
    """Record that an account at a provider was unlinked; an iD that nothing shows to be the person's isn't verified."""
    user = account.user
    uid = personal(account.uid, user)
    record(user, "user.sign_in_unlinked", user, provider=account.provider, uid=uid, **details)
    if account.provider == "orcid":
        User.objects.filter(pk=user.pk, orcid=account.uid).update(orcid_verified=False)


def end_sessions(user: User, *, but: HttpRequest | None = None) -> None:
    """Log `user` out everywhere, except in the session of the request `but`, if that is theirs."""
    # Checked before the change, which logs the session out.
    is_own = but is not None and but.user == user
    User.objects.filter(pk=user.pk).update(session_number=F("session_number") + 1)
    user.refresh_from_db(fields=["session_number"])
    if but is not None and is_own:
        update_session_auth_hash(but, user)


@transaction.atomic
def end_access(user: User, *, because: str) -> None:
    """End all sessions and API tokens for good: none comes back with the account."""
    revoke_all_tokens(user, because=because)
    end_sessions(user)


def authenticate_token(secret: str) -> ApiToken | None:
    """Return the token with this secret; None when it is unknown or revoked, or its user is inactive.

    The token is looked up by its digest, so the time that takes reveals nothing about the secret.
    Raises `ProblemError` (`E_REQUEST_TOKEN_EXPIRED`).
    """
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=ApiToken.digest_of(secret), revoked_at__isnull=True, user__is_active=True)
        .first()
    )
    if token is None:
        return None
    if token.is_expired:
        raise ProblemError.of(
            ErrorCode.REQUEST_TOKEN_EXPIRED, where=token.label, found=f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
        )
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at >= LAST_USE_PRECISION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


@transaction.atomic
def issue_second_factor(user: User) -> tuple[str, list[str]]:
    """Give `user` an authenticator app and recovery codes, in place of earlier ones; returns secret and codes."""
    issued = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
    Authenticator.objects.filter(user=user, type__in=issued).delete()
    secret = str(generate_totp_secret())
    TOTP.activate(user, secret)
    codes = RecoveryCodes.activate(user).get_unused_codes()
    record(None, "user.second_factor_added", user, type=Authenticator.Type.TOTP)
    return secret, codes


@transaction.atomic
def reset_second_factor(user: User, *, actor: User | None) -> int:
    """Remove all second factors of somebody who has lost them, and log them out; returns how many there were."""
    removed: int = Authenticator.objects.filter(user=user).delete()[0]
    end_sessions(user)
    record(actor, "user.second_factor_reset", user, removed=removed)
    if actor != user:
        security_changed.send(
            sender=User,
            user=user,
            subject="Your second factors were reset",
            text="An organizer has removed the second factors of your account and logged you out everywhere.\n\n"
            "If you didn't ask for this, write to us.",
        )
    return removed


@transaction.atomic
def reencrypt_second_factors() -> int:
    """Encrypt the secrets of all second factors with the site's current key; returns how many have one.

    Raises `InvalidToken`, and changes nothing, if one was encrypted with a key that is unknown.
    """
    changed = 0
    for factor in Authenticator.objects.select_for_update():
        stored = {name: factor.data[name] for name in ENCRYPTED_MEMBERS if name in factor.data}
        if stored:
            factor.data |= {name: encrypt(decrypt(secret)) for name, secret in stored.items()}
            factor.save(update_fields=["data"])
            changed += 1
    return changed


@transaction.atomic
def note_password_set(user: User, *, actor: User) -> None:
    """Do what follows when an organizer has set somebody's password: end the tokens, record it, and mail the owner."""
    record(actor, "user.password_set", user)
    revoke_all_tokens(user, because="password set by an organizer")
    unlink_accounts(user, because="password set by an organizer")
    security_changed.send(
        sender=User,
        user=user,
        subject="Your password was set by an organizer",
        text="An organizer has set a new password for your account, and your API tokens have been revoked.\n\nIf you "
        f"didn't ask for this, reset your password at {settings.SITE_URL}{reverse('account_reset_password')} and write "
        "to us.",
    )


@transaction.atomic
def ensure_user(
    email: str, *, name: str, password: str | None = None, staff: bool = False, superuser: bool = False
) -> tuple[User, bool]:
    """Create the account of `email`, or update it; the second value says whether it is new.

    Rights are only ever added. Without a password a new account gets none, an old one's stays.
    Raises `ValidationError` for a name that `clean_name` rejects.
    """
    name = clean_name(name)
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
    action = "user.created" if created else "user.updated"
    record(None, action, user, staff=user.is_staff, superuser=user.is_superuser)
    return user, created


@transaction.atomic
def make_reviewer(user: User) -> None:
    """Add `user` to the group of those who review privacy proofs."""
    user.groups.add(Group.objects.get(name=REVIEWERS))
    record(None, "user.made_reviewer", user)


@transaction.atomic
def make_track_organizer(user: User) -> None:
    """Add `user` to the group of those who organize the tracks that name them, and no others."""
    user.groups.add(Group.objects.get(name=TRACK_ORGANIZERS))
    User.objects.filter(pk=user.pk).update(is_staff=True)
    record(None, "user.made_track_organizer", user)


@transaction.atomic
def make_organizer(user: User) -> None:
    """Add `user` to the group of those who organize every track; they no longer organize single ones."""
    user.groups.add(Group.objects.get(name=ORGANIZERS))
    user.groups.remove(Group.objects.get(name=TRACK_ORGANIZERS))
    User.objects.filter(pk=user.pk).update(is_staff=True)
    record(None, "user.made_organizer", user)


@transaction.atomic
def vouch_for_address(user: User) -> None:
    """Mark the user's address as verified, as when an organizer made the account."""
    EmailAddress.objects.update_or_create(
        user=user, email=user.email.lower(), defaults={"verified": True, "primary": True}
    )
