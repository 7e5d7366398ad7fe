"""Teams: the unit that submits and that quotas are counted for. A person is in one team at a time."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.urls import reverse
from django.utils import timezone
from typing_extensions import override

from docvqa_site.teams.countries import choices
from docvqa_site.teams.look_alikes import skeleton
from docvqa_site.ui.names import NameField

INVITATION_DAYS = 14
# Of invitations that were neither accepted nor revoked; they may have expired.
OPEN = models.Q(accepted_at__isnull=True, revoked_at__isnull=True)


class Team(models.Model):
    """People who submit together. The name appears on the leaderboards.

    No two teams have names that look alike. A team that everybody has left without a submission has no `name_skeleton`
    any more, so that its name is free again.
    """

    name = NameField(max_length=80, help_text="Shown on the leaderboards.")
    name_skeleton = models.CharField(max_length=400, unique=True, null=True, editable=False)  # noqa: DJ001
    slug = models.SlugField(max_length=80, unique=True, help_text="The team's part of the site's addresses.")
    affiliation = NameField(max_length=160, blank=True, help_text="For example, your university or company.")
    website = models.URLField(blank=True)
    country = models.CharField(
        max_length=2,
        blank=True,
        choices=choices,
        help_text="Optional. Shown on the team's page, and counted on the participation page.",
    )
    founder = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        editable=False,
        help_text="The person who created the team. The number of teams one person can create is limited.",
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("teams:detail", args=[self.slug])

    @override
    def clean(self) -> None:
        """Set the skeleton of the name. Raises `ValidationError` when another team's name looks like it."""
        self.name_skeleton = skeleton(self.name)
        if Team.objects.filter(name_skeleton=self.name_skeleton).exclude(pk=self.pk).exists():
            raise ValidationError({"name": "This name is taken or too similar to another team's."})


class Role(models.TextChoices):
    OWNER = "owner", "owner"
    MEMBER = "member", "member"


class Membership(models.Model):
    """One person in one team; nobody is in two. What ends it leaves a `PastMembership`."""

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
        return self.role == Role.OWNER

    @override
    @transaction.atomic
    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """End the membership. Conflicts of interest and quotas depend on who was in which team, so that is kept."""
        PastMembership.objects.create(
            team_id=self.team_id, user_id=self.user_id, role=self.role, joined_at=self.joined_at
        )
        return super().delete(*args, **options)


class PastMembership(models.Model):
    """A membership that has ended. Written by `Membership.delete`, never changed."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="past_memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="past_memberships"
    )
    role = models.CharField(max_length=10, choices=Role.choices)
    joined_at = models.DateTimeField()
    left_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["left_at"]

    def __str__(self) -> str:
        return f"{self.user} in {self.team} until {self.left_at:%Y-%m-%d}"


def _expiry() -> datetime:
    return timezone.now() + timedelta(days=INVITATION_DAYS)


class Invitation(models.Model):
    """An invitation by email. The link's secret is stored as a hash and works once, for the invited address."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField("email address")
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(default=_expiry)
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "email"], condition=OPEN, name="one_open_invitation_per_address"
            )
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.team}"

    @staticmethod
    def digest_of(secret: str) -> str:
        return hashlib.sha256(secret.encode()).hexdigest()


class TeamKey(models.Model):
    """An Ed25519 key that signs the team's training records. A revoked one signs nothing new; what it signed stays."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="keys")
    public_key = models.CharField(max_length=64, help_text="64 hexadecimal digits.")
    name = NameField(max_length=80, blank=True, help_text="For example, the machine where the key is stored.")
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
        return fingerprint(self.public_key)


def fingerprint(public_key: str) -> str:
    """Return the first 16 digits of a key in groups, enough to distinguish a team's keys."""
    return " ".join(public_key[start : start + 4] for start in range(0, 16, 4)).strip()
