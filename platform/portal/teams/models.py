"""Teams: the unit that submits and that quotas are counted for. A person is in one team at a time."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

INVITATION_DAYS = 14


class Team(models.Model):
    """People who submit together. The name appears on the leaderboards."""

    name = models.CharField(max_length=80, unique=True, help_text="As it should appear on the leaderboards.")
    slug = models.SlugField(max_length=80, unique=True, help_text="Its part of the site's addresses.")
    affiliation = models.CharField(
        max_length=160, blank=True, help_text="Such as your university or company."
    )
    website = models.URLField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    if TYPE_CHECKING:
        memberships: RelatedManager["Membership"]
        invitations: RelatedManager["Invitation"]
        keys: RelatedManager["TeamKey"]

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the address of the team's page."""
        return reverse("teams:detail", args=[self.slug])


class Role(models.TextChoices):
    """The role of a member in a team."""

    OWNER = "owner", "owner"
    MEMBER = "member", "member"


class Membership(models.Model):
    """One person in one team; nobody is in two."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="membership")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    joined_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["joined_at"]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"

    @property
    def is_owner(self) -> bool:
        """Whether the member owns the team."""
        return self.role == Role.OWNER


def _expiry() -> datetime:
    return timezone.now() + timedelta(days=INVITATION_DAYS)


class Invitation(models.Model):
    """An invitation by e-mail. The link's secret is stored as a hash and works once, for the invited address."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField("e-mail address")
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(default=_expiry)
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "email"],
                condition=models.Q(accepted_at__isnull=True, revoked_at__isnull=True),
                name="one_open_invitation_per_address",
            )
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.team}"

    @staticmethod
    def digest_of(secret: str) -> str:
        """Return the digest by which an invitation is stored and looked up."""
        return hashlib.sha256(secret.encode()).hexdigest()

    @staticmethod
    def new_secret() -> str:
        """Return the secret of a new invitation's link."""
        return secrets.token_urlsafe(24)


class TeamKey(models.Model):
    """An Ed25519 key that signs the team's training records. A revoked one signs nothing new; what it signed stays."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="keys")
    public_key = models.CharField(max_length=64, help_text="64 hexadecimal digits.")
    name = models.CharField(max_length=80, blank=True, help_text="Such as the machine that it is stored on.")
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["public_key"],
                condition=models.Q(revoked_at__isnull=True),
                name="a_current_key_has_one_team",
            )
        ]

    def __str__(self) -> str:
        return f"{self.fingerprint} of {self.team}"

    @property
    def fingerprint(self) -> str:
        """The key's first 16 digits in groups, enough to distinguish a team's keys."""
        return " ".join(self.public_key[start : start + 4] for start in range(0, 16, 4))
