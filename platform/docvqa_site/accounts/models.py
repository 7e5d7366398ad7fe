"""People: the email address is the login. API tokens are stored as hashes and shown once."""

import hashlib
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac
from typing_extensions import override

from docvqa_site.ui.names import NameField

TOKEN_PREFIX = "pfl_"  # noqa: S105  (lets secret scanners find a leaked token)
TOKEN_DAYS = 90
# The group of those who organize single tracks.
TRACK_ORGANIZERS = "Track organizers"


class UserManager(DjangoUserManager["User"]):
    """Creates users, whose email address is their user name."""

    def create_user(  # type: ignore[override]
        self, email: str, password: str | None = None, **fields: Any
    ) -> "User":
        """Create a user; without a password nobody can log in by form."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(  # type: ignore[override]
        self, email: str, password: str | None = None, **fields: Any
    ) -> "User":
        """Create an organizer with every right."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractUser):
    """A person with an account. The email address, in lower case, is the user name.

    Staff without a second factor has no permission at all, wherever one is asked for.
    """

    username = None  # type: ignore[assignment]
    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]
    email = models.EmailField("email address", unique=True)
    name = NameField(max_length=120, help_text="Shown with your team's results.")
    orcid = models.CharField(
        "ORCID iD",
        max_length=19,
        blank=True,
        help_text="For example, 0000-0002-1825-0097 or its web address.",
    )
    orcid_verified = models.BooleanField(default=False, editable=False)
    shows_orcid = models.BooleanField(
        "show my ORCID iD",
        default=False,
        help_text="Shown on your team's page, on its methods' pages and, once verified, in their citations.",
    )
    session_number = models.PositiveIntegerField(
        default=0, editable=False, help_text="Every session ends when it changes."
    )

    erasure_due_at = models.DateTimeField(
        null=True, editable=False, help_text="When the account is erased, as its owner has asked."
    )
    erased_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="Since when the row is a key alone, which says nothing about the person.",
    )

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        return str(self)

    def get_short_name(self) -> str:
        return str(self)

    @cached_property
    def has_second_factor(self) -> bool:
        """Whether logging in needs more than the password: a code of an authenticator app, or a passkey."""
        # Its models can't be imported before this one's.
        from allauth.mfa.utils import is_mfa_enabled

        return bool(is_mfa_enabled(self, ["totp", "webauthn"]))

    @cached_property
    def organizes_single_tracks(self) -> bool:
        """Whether they organize only the tracks that name them."""
        return not self.is_superuser and self.groups.filter(name=TRACK_ORGANIZERS).exists()

    @property
    def lacks_second_factor(self) -> bool:
        """Whether the account must have a second factor and has none."""
        return self.is_staff and not self.has_second_factor

    @override
    def has_perm(self, perm: str, obj: Any = None) -> bool:
        # Of those who were staff, too, and most people have none: that needs no query.
        return self.is_staff and not self.lacks_second_factor and super().has_perm(perm, obj)

    @override
    def has_module_perms(self, app_label: str) -> bool:
        return self.is_staff and not self.lacks_second_factor and super().has_module_perms(app_label)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return what a session must carry: it ends with the password, as Django has it, and with `session_number`."""
        value = f"{self.password} {self.session_number}"
        return salted_hmac(
            "docvqa_site.accounts.session", value, secret=secret, algorithm="sha256"
        ).hexdigest()


class Scope(models.TextChoices):
    """What an API token may be used for."""

    READ = "read", "read: tracks, your team's submissions and their results"
    SUBMIT = "submit", "submit: everything that pfl does, such as registering a signing key, and reading"
    MANAGE = (
        "manage",
        "manage: also your name, your team, its members and invitations, and revoking signing keys",
    )

    @property
    def covers(self) -> frozenset["Scope"]:
        """The scopes whose requests a token with this one may send."""
        order = list(Scope)
        return frozenset(order[: order.index(self) + 1])


def _token_expiry() -> datetime:
    return timezone.now() + timedelta(days=TOKEN_DAYS)


class ApiToken(models.Model):
    """A bearer token of one user, for `pfl submit`. Only its SHA-256 is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    label = NameField(max_length=80, help_text="Where you use the token, such as “training cluster”.")
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.SUBMIT)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(default=_token_expiry)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.label} of {self.user}"

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()

    @staticmethod
    def digest_of(secret: str) -> str:
        return hashlib.sha256(secret.encode()).hexdigest()
