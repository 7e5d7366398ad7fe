"""The boards of a track as files."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from portal.audit.versions import boards_versions
from portal.challenge.models import Track
from portal.leaderboard.caching import cached, unless_unchanged
from portal.leaderboard.published import as_csv


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
