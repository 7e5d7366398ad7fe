"""An append-only record of who changed what.

Entries name people by keys alone: by that of the account, and, for a name or address, by that of a `PersonalDetail`. So
whatever says who somebody is can be erased, and the entries stay as they were written.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils import timezone
from typing_extensions import override

from docvqa_site.audit.hiding import hidden_from


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
    def readable(self) -> dict[str, Any]:
        """The details, with the names and addresses that haven't been erased."""
        return next(readable_details([self.details]))

    @property
    def words(self) -> str:
        """The action as pages show it, such as "submission: proof revised"."""
        return self.action.replace(".", ": ").replace("_", " ")


PERSONAL = "personal:"
ERASED = "(erased)"
BATCH = 500


def _new_key() -> str:
    return PERSONAL + secrets.token_hex(12)


class PersonalDetail(models.Model):
    """A name or address in audit entries, which have its key. `person` is whose it is, if they have an account."""

    key = models.CharField(primary_key=True, max_length=40, default=_new_key, editable=False)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    text = models.TextField()

    def __str__(self) -> str:
        return self.text


def personal(text: str, person: models.Model | None = None) -> str:
    """Store what says who somebody is, and return the key that an audit entry has in its place."""
    return (
        PersonalDetail.objects.create(text=text, person_id=person.pk if person else None).key if text else ""
    )


def readable_details(
    rows: Iterable[Mapping[str, Any]], of: models.Q | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the details of entries with texts in place of keys; only those texts that match `of`, if it is given."""
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        keys = {key for details in batch for key in _keys(details)}
        found = PersonalDetail.objects.filter(of or models.Q(), key__in=keys)
        texts = dict(found.values_list("key", "text")) if keys else {}
        yield from (_with_texts(details, texts) for details in batch)


def _keys(value: object) -> Iterator[str]:
    match value:
        case str() if value.startswith(PERSONAL):
            yield value
        case list():
            for item in value:
                yield from _keys(item)
        case dict():
            for item in value.values():
                yield from _keys(item)


def _with_texts(value: Any, texts: Mapping[str, str]) -> Any:
    match value:
        case str() if value.startswith(PERSONAL):
            return texts.get(value, ERASED)
        case list():
            return [_with_texts(item, texts) for item in value]
        case dict():
            return {name: _with_texts(item, texts) for name, item in value.items()}
        case _:
            return value


class Version(models.Model):
    """The version of the boards of one track, or of all tracks; see `docvqa_site.audit.versions`."""

    name = models.CharField(primary_key=True, max_length=80)
    value = models.CharField(max_length=32)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


def entries_for(organizer: Any, hidden: models.Q | None = None) -> "models.QuerySet[AuditEntry]":
    """Return the entries that an organizer may see. A member of a team competes, and sees no actions of others.

    Args:
        hidden: The condition of what is hidden from the organizer, where it has been looked up already.
    """
    hidden = hidden_from(organizer) if hidden is None else hidden
    entries = AuditEntry.objects.exclude(hidden) if hidden else AuditEntry.objects.all()
    return entries.filter(actor=organizer) if hasattr(organizer, "membership") else entries


def record(actor: models.Model | None, action: str, subject: models.Model, **details: Any) -> AuditEntry:
    """Append one entry about `subject`, in the caller's transaction.

    `details` must be JSON values. Names and addresses of people go through `personal`.
    """
    return AuditEntry.objects.create(
        actor_id=actor.pk if actor else None,
        action=action,
        object_type=subject._meta.label_lower,
        object_id=str(subject.pk),
        details=details,
    )
