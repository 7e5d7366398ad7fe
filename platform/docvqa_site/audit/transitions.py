"""Changes of state: every one follows a table of allowed transitions and leaves an audit entry."""

from collections.abc import Mapping
from typing import Any

from django.db import models, transaction

from docvqa_site.audit.models import record

# Each state with the states that may follow it.
Transitions = Mapping[str, frozenset[str]]


class IllegalTransitionError(Exception):
    """A change that the table doesn't allow: a defect in the caller, or a race that it must handle."""


def move(
    instance: models.Model,
    state: str,
    transitions: Transitions,
    actor: models.Model | None,
    fields: Mapping[str, Any],
    **details: Any,
) -> None:
    """Move an instance to `state`, set `fields` with it, and write the audit entry with `details`.

    The caller holds the lock of the instance's row.

    Raises:
        IllegalTransitionError: The table doesn't allow the change, or no transaction is open.
    """
    if not transaction.get_connection().in_atomic_block:
        raise IllegalTransitionError("States change inside a transaction only.")
    name, before = type(instance).__name__, instance.state  # type: ignore[attr-defined]
    if state not in transitions[before]:
        raise IllegalTransitionError(f"{name} {instance.pk} can't go from {before} to {state}.")
    for field, value in {"state": state, **fields}.items():
        setattr(instance, field, value)
    instance.save(update_fields=["state", *fields])
    record(actor, f"{name.lower()}.{state}", instance, before=before, **details)
