"""The leaderboards in the REST API."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router

from portal.challenge.models import Track
from portal.leaderboard.published import PublishedTrack, publish

router = Router(tags=["leaderboards"])


@router.get("/{slug}", response=PublishedTrack, auth=None, summary="All boards of a track")
def read_leaderboard(request: HttpRequest, slug: str) -> PublishedTrack:  # noqa: ARG001
    """Ranked runs first, then those without a rank, each with the reason."""
    return publish(get_object_or_404(Track, slug=slug))
