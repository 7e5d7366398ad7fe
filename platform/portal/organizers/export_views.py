"""Exports and participation figures."""

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.requests import UserRequest
from portal.audit.models import record
from portal.organizers.access import for_organizers
from portal.organizers.exports import as_csv, as_json
from portal.organizers.participation import participation
from portal.organizers.tables import TABLES

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


@require_safe
@for_organizers()
def exports(request: UserRequest) -> HttpResponseBase:
    """Show the exports that the visitor may read, and the participation per track and month."""
    tables = {name: table for name, table in TABLES.items() if request.user.has_perm(table.permission)}
    return render(request, "organizers/exports.html", {"tables": tables, "participation": participation()})


@require_safe
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
