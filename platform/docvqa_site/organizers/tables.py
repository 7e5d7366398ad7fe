"""What the organizers export: people, submissions, reviews and audit entries, as rows of named plain values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any, cast

from django.contrib.auth.models import Group
from django.db.models import Exists, F, OuterRef, QuerySet

from docvqa_site.accounts.groups import ORGANIZERS, REVIEWERS
from docvqa_site.accounts.models import TRACK_ORGANIZERS, User
from docvqa_site.audit.models import entries_for, readable_details
from docvqa_site.challenge.models import TeamRegistration
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.reviews.records import COLUMNS, review_rows
from docvqa_site.reviews.selectors import judgeable_submissions
from docvqa_site.submissions.models import Run
from docvqa_site.submissions.selectors import competed_tracks

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


def _in_group(name: str) -> Exists:
    return Exists(Group.objects.filter(name=name, user=OuterRef("pk")))


def _registrations(organizer: User) -> QuerySet[TeamRegistration]:
    """Return the registrations for the tracks that the organizer organizes and doesn't compete in."""
    tracks = organized_tracks(organizer).exclude(pk__in=competed_tracks(organizer).order_by().values("pk"))
    found = TeamRegistration.objects.filter(track__in=tracks.order_by().values("pk"))
    return found.order_by("track__slug", "created_at", "pk")


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
            "superuser": "is_superuser",
            "reviewer": "reviews",
            "organizer_of_all_tracks": "organizes_all",
            "organizer_of_single_tracks": "organizes_single",
            "joined_at": "date_joined",
            "last_login": "last_login",
        },
        lambda _: User.objects.annotate(
            reviews=_in_group(REVIEWERS),
            organizes_all=_in_group(ORGANIZERS),
            organizes_single=_in_group(TRACK_ORGANIZERS),
        ).order_by("pk"),
    ),
    "registrations": _of_query(
        "Registrations of teams, with their answers",
        "challenge.change_track",
        {
            "track": "track__slug",
            "team": "team__name",
            "state": "state",
            "answers": "answers",
            "reason": "reason",
            "registered_by": "created_by__email",
            "registered_at": "created_at",
        },
        _registrations,
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
