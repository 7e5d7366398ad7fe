"""People: the e-mail address is the login. API tokens are stored as hashes and shown once."""

import hashlib
import secrets
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models
from django.utils import timezone

TOKEN_PREFIX = "pfl_"  # noqa: S105  (lets secret scanners find a leaked token)


class UserManager(DjangoUserManager["User"]):
    """Creates users, whose e-mail address is their user name."""

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
    """A person with an account. The e-mail address, in lower case, is the user name."""

    username = None  # type: ignore[assignment]
    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]
    email = models.EmailField("e-mail address", unique=True)
    name = models.CharField(max_length=120, help_text="As it should appear beside your team's results.")

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        return str(self)

    def get_short_name(self) -> str:
        return str(self)


class ApiToken(models.Model):
    """A bearer token of one user, for `pfl submit`. Only its SHA-256 is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    label = models.CharField(max_length=80, help_text="Where you use it, such as “training cluster”.")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.label} of {self.user}"

    @classmethod
    def issue(cls, user: User, label: str) -> tuple["ApiToken", str]:
        """Make a token; the second value is the secret, which can't be read again."""
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        return cls.objects.create(user=user, label=label, digest=cls.digest_of(secret)), secret

    @staticmethod
    def digest_of(secret: str) -> str:
        """Return the digest by which a token is stored and looked up."""
        return hashlib.sha256(secret.encode()).hexdigest()
