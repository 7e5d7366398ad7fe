"""Exports and participation figures."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncMonth
from django.http import Http404, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.audit.models import record
from docvqa_site.challenge.selectors import others_tracks
from docvqa_site.organizers.access import for_organizers
from docvqa_site.organizers.exports import as_csv, as_json
from docvqa_site.organizers.tables import TABLES
from docvqa_site.submissions.models import RunState, Submission

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


@for_organizers()
def exports(request: UserRequest) -> HttpResponseBase:
    """Show the exports that the visitor may read, and the participation per track and month."""
    tables = {name: table for name, table in TABLES.items() if request.user.has_perm(table.permission)}
    return render(
        request, "organizers/exports.html", {"tables": tables, "participation": _participation(request.user)}
    )


@for_organizers()
def export(request: UserRequest, name: str, kind: str) -> HttpResponseBase:
    """Send a table as a file, row by row. Who took it is recorded."""
    table = TABLES.get(name)
    if table is None or kind not in CONTENT_TYPES:
        raise Http404
    if not request.user.has_perm(table.permission):
        raise PermissionDenied
    if request.method == "GET":
        record(request.user, "export.taken", request.user, table=name, format=kind)
    rows = table.rows(request.user)
    parts = as_csv(list(table.columns), rows) if kind == "csv" else as_json(rows)
    disposition = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return StreamingHttpResponse(parts, content_type=CONTENT_TYPES[kind], headers=disposition)


def _participation(organizer: User) -> "QuerySet[Submission, Any]":
    """Return a row per track and month of submission, in one query. Baselines and withdrawn ones count, drafts don't.

    `people` are those who submitted; `runs` are of all states, `scored` and `rejected` of these.
    """
    made = (
        Submission.objects.filter(submitted_at__isnull=False)
        .exclude(track__in=others_tracks(organizer))
        .order_by()
    )
    by_month = made.annotate(month=TruncMonth("submitted_at")).values("track__name", "month")
    return by_month.annotate(
        teams=Count("team", distinct=True),
        people=Count("created_by", distinct=True),
        submissions=Count("pk", distinct=True),
        runs_made=Count("runs", distinct=True),
        scored=Count("runs", filter=Q(runs__state=RunState.SCORED), distinct=True),
        rejected=Count("runs", filter=Q(runs__state=RunState.REJECTED), distinct=True),
    ).order_by("-month", "track__position", "track__name")
