"""The boards of a track as files."""

import json
from collections.abc import Callable, Iterable

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.caching import kept_file, unless_unchanged
from docvqa_site.boards.published import PublishedTrack, csv_lines, json_parts
from docvqa_site.challenge.models import Track

# Of a file of megabytes, which Django by itself sends in pieces of 4 kB.
BLOCK_BYTES = 1 << 16


@require_safe
def track_csv(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Send the boards of one track as a CSV file."""
    track = get_object_or_404(Track, slug=slug)
    return _sent(request, track, "csv", "text/csv; charset=utf-8", lambda: csv_lines(track))


@require_safe
def track_json(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Send the boards of one track as a JSON file, which names its schema."""
    track = get_object_or_404(Track, slug=slug)
    schema = settings.SITE_URL + reverse("leaderboard:json_schema", args=[track.slug])
    return _sent(request, track, "json", "application/json; charset=utf-8", lambda: json_parts(track, schema))


def _sent(
    request: HttpRequest, track: Track, form: str, content_type: str, parts: Callable[[], Iterable[str]]
) -> HttpResponseBase:
    """Send the file of this version of the boards, piece by piece: neither it nor its rows are in memory at once."""
    version = boards_versions([track.pk])[track.pk]

    def respond() -> HttpResponseBase:
        response = FileResponse(
            kept_file(version, f"{form}-{track.pk}", parts),
            as_attachment=True,
            filename=f"leaderboard-{track.slug}.{form}",
            content_type=content_type,
        )
        response.block_size = BLOCK_BYTES
        return response

    return unless_unchanged(request, version, respond)


@require_safe
def json_schema(_: HttpRequest, slug: str) -> HttpResponse:
    """Send the schema of the JSON file."""
    get_object_or_404(Track, slug=slug)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **PublishedTrack.model_json_schema(mode="serialization"),
    }
    return HttpResponse(json.dumps(schema, indent=1), content_type="application/schema+json")
