"""What the organizers export: people, submissions, reviews and audit entries, as rows of named plain values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any, cast

from django.db.models import F, QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import entries_for, readable_details
from docvqa_site.reviews.records import COLUMNS, review_rows
from docvqa_site.reviews.selectors import judgeable_submissions
from docvqa_site.submissions.models import Run

BATCH = 500


@dataclass(frozen=True)
class Table:
    """Something to export, read with `permission`: `rows` yields what an organizer may see of it, by column."""

    title: str
    permission: str
    columns: Sequence[str]
    rows: Callable[[User], Iterator[dict[str, object]]]


def _of_query(
    title: str, permission: str, fields: dict[str, str], query: Callable[[User], QuerySet[Any]]
) -> Table:
    """Return the table of a query: `fields` by the names of the columns. A batch of rows is in memory at a time."""

    def rows(organizer: User) -> Iterator[dict[str, object]]:
        for values in query(organizer).values_list(*map(F, fields.values())).iterator(BATCH):
            yield dict(zip(fields, values, strict=True))

    return Table(title, permission, list(fields), rows)


def _runs(organizer: User) -> QuerySet[Run]:
    runs = Run.objects.filter(submission__in=judgeable_submissions(organizer))
    return runs.order_by("submission__submitted_at", "pk")


_ENTRIES = _of_query(
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
    lambda organizer: entries_for(organizer).order_by("at", "pk"),
)


def _audit_rows(organizer: User) -> Iterator[dict[str, object]]:
    """Yield the entries with the names and addresses that haven't been erased."""
    rows, again = tee(cast("Iterator[dict[str, Any]]", _ENTRIES.rows(organizer)))
    for row, details in zip(rows, readable_details(row["details"] for row in again), strict=True):
        yield {**row, "details": details}


TABLES = {
    "people": _of_query(
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
    "submissions": _of_query(
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
            "license": "submission__license",
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
    "reviews": Table("Reviews", "reviews.view_proofreview", COLUMNS, review_rows),
    "audit": replace(_ENTRIES, rows=_audit_rows),
}
