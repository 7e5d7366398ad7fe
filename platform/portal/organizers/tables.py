"""What the organizers export: people, submissions, reviews and audit entries, as rows of named plain values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.reviews.selectors import judgeable_submissions, visible_reviews
from portal.submissions.models import Run

BATCH = 500


@dataclass(frozen=True)
class Table:
    """Something to export: `columns` by name with the field of each, read with `permission`."""

    title: str
    permission: str
    columns: dict[str, str]
    query: Callable[[User], QuerySet[Any]]

    def rows(self, organizer: User) -> Iterator[dict[str, object]]:
        """Yield the rows that the organizer may see, a batch of them in memory at a time."""
        found = self.query(organizer).values_list(*map(F, self.columns.values()))
        for values in found.iterator(BATCH):
            yield dict(zip(self.columns, values, strict=True))


def _runs(organizer: User) -> QuerySet[Run]:
    runs = Run.objects.filter(submission__in=judgeable_submissions(organizer))
    return runs.order_by("submission__submitted_at", "pk")


TABLES = {
    "people": Table(
        "People",
        "accounts.view_user",
        {
            "id": "pk",
            "name": "name",
            "email": "email",
            "team": "membership__team__name",
            "role": "membership__role",
            "active": "is_active",
            "staff": "is_staff",
            "joined_at": "date_joined",
            "last_login": "last_login",
        },
        lambda _: User.objects.order_by("pk"),
    ),
    "submissions": Table(
        "Submissions",
        "submissions.view_submission",
        {
            "run": "pk",
            "submission": "submission__pk",
            "track": "submission__track__slug",
            "team": "submission__team__name",
            "title": "submission__title",
            "submission_state": "submission__state",
            "phase": "submission__phase__name",
            "submitted_at": "submission__submitted_at",
            "published_at": "submission__published_at",
            "anonymous": "submission__anonymous",
            "practice": "submission__practice",
            "alias": "submission__alias",
            "refunded_at": "submission__refunded_at",
            "baseline": "submission__is_baseline",
            "budget": "budget",
            "state": "state",
            "scored_at": "scored_at",
            "disqualified_because": "disqualified_because",
            "anls": "anls",
            "bytes_total": "bytes_total",
            "epsilon": "epsilon",
        },
        _runs,
    ),
    "reviews": Table(
        "Reviews",
        "reviews.view_proofreview",
        {
            "submission": "submission__pk",
            "title": "submission__title",
            "team": "submission__team__name",
            "track": "submission__track__slug",
            "reviewer": "reviewer__email",
            "decision": "decision",
            "reason": "reason",
            "checklist": "checklist",
            "notes": "notes",
            "changes_due": "changes_due",
            "declares_no_conflict": "declares_no_conflict",
            "created_at": "created_at",
            "decided_at": "decided_at",
        },
        lambda organizer: visible_reviews(organizer).order_by("pk"),
    ),
    "audit": Table(
        "Audit entries",
        "audit.view_auditentry",
        {
            "at": "at",
            "actor": "actor__email",
            "action": "action",
            "object_type": "object_type",
            "object_id": "object_id",
            "details": "details",
        },
        lambda _: AuditEntry.objects.order_by("at", "pk"),
    ),
}
