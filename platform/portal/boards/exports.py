"""The boards of a track as files."""

import json

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from portal.audit.versions import boards_versions
from portal.boards.caching import cached, unless_unchanged
from portal.boards.published import PublishedTrack, as_csv, as_json
from portal.challenge.models import Track


@require_safe
def track_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Send the boards of one track as a CSV file."""
    exported = get_object_or_404(Track, slug=slug)
    version = boards_versions([exported.pk])[exported.pk]

    def respond() -> HttpResponse:
        return HttpResponse(
            cached(version, f"csv {exported.pk}", lambda: as_csv(exported)),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="leaderboard-{exported.slug}.csv"'},
        )

    return unless_unchanged(request, version, respond)


@require_safe
def track_json(request: HttpRequest, slug: str) -> HttpResponse:
    """Send the boards of one track as a JSON file, which names its schema."""
    exported = get_object_or_404(Track, slug=slug)
    version = boards_versions([exported.pk])[exported.pk]
    schema = settings.SITE_URL + reverse("leaderboard:json_schema", args=[exported.slug])

    def respond() -> HttpResponse:
        return HttpResponse(
            cached(version, f"json {exported.pk}", lambda: as_json(exported, schema)),
            content_type="application/json; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="leaderboard-{exported.slug}.json"'},
        )

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
