"""Disqualifications that organizers lifted, each with its public reason: what the audit trail has of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from docvqa_site.audit.models import AuditEntry
from docvqa_site.submissions.models import Run


@dataclass(frozen=True)
class Lifting:
    """When a run's last disqualification was lifted, and why; the reason is empty where none was given."""

    at: datetime
    reason: str


def lifted_since(since: datetime) -> Mapping[UUID, Lifting]:
    """Return the last lifting of each run that had one after this moment, also of those disqualified again."""
    entries = AuditEntry.objects.filter(action="run.requalified", object_type="submissions.run", at__gt=since)
    found = entries.order_by("at").values_list("object_id", "at", "details__reason")
    return {UUID(run): Lifting(at, reason or "") for run, at, reason in found}


def lifting_of(run: Run) -> Lifting | None:
    """Return the last lifting of the run's disqualification; None where it is disqualified, or never was."""
    if run.disqualified_because:
        return None
    entries = AuditEntry.objects.filter(
        action="run.requalified", object_type="submissions.run", object_id=str(run.pk)
    )
    found = entries.values_list("at", "details__reason").first()
    return Lifting(found[0], found[1] or "") if found else None
