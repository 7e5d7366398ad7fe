"""An append-only record of who changed what."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils import timezone
from typing_extensions import override


class AuditEntry(models.Model):
    """One change. `actor` is empty for changes by the platform itself.

    Triggers in the database keep entries as they are.
    """

    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    action = models.CharField(max_length=60, help_text="Noun and verb, such as run.scored.")
    object_type = models.CharField(max_length=60)
    object_id = models.CharField(max_length=64, db_index=True)
    details = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.action} {self.object_type} {self.object_id}"

    @override
    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("An audit entry is never changed.")
        super().save(*args, **kwargs)

    @override
    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("An audit entry is never deleted.")

    @property
    def words(self) -> str:
        """The action as pages show it, such as "submission: proof revised"."""
        return self.action.replace(".", ": ").replace("_", " ")


class Version(models.Model):
    """The version of the boards of one track, or of all tracks; see `docvqa_site.audit.versions`."""

    name = models.CharField(primary_key=True, max_length=80)
    value = models.CharField(max_length=32)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


def entries_for(organizer: Any) -> "models.QuerySet[AuditEntry]":
    """Return the entries that an organizer may see. A member of a team competes, and sees no actions of others."""
    entries = AuditEntry.objects.all()
    return entries.filter(actor=organizer) if hasattr(organizer, "membership") else entries


def record(actor: models.Model | None, action: str, subject: models.Model, **details: Any) -> AuditEntry:
    """Append one entry about `subject`, in the caller's transaction. `details` must be JSON values."""
    return AuditEntry.objects.create(
        actor_id=actor.pk if actor else None,
        action=action,
        object_type=subject._meta.label_lower,
        object_id=str(subject.pk),
        details=details,
    )
