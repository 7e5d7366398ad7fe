"""The leaderboards in the REST API."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Router

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.boards import stored_boards
from docvqa_site.boards.caching import unless_unchanged
from docvqa_site.boards.published import PublishedTrack, publish
from docvqa_site.challenge.models import Track
from docvqa_site.paging import DEFAULT_LIMIT, ListLimit, ListOffset

router = Router(tags=["leaderboards"])


@router.get("/{slug}", response=PublishedTrack, auth=None, summary="Get a track's leaderboards")
def read_leaderboard(
    request: HttpRequest,
    slug: str,
    budget: float | None = None,
    limit: ListLimit = DEFAULT_LIMIT,
    offset: ListOffset = 0,
) -> HttpResponse:
    """Ranked runs first, then unranked runs with the reason: `limit` rows per board, starting at `offset`.

    `budget` selects the board at this ε. The CSV file on the leaderboard page contains all rows.
    """
    track = get_object_or_404(Track, slug=slug)
    version = boards_versions([track.pk])[track.pk]

    def respond() -> HttpResponse:
        boards = [board for board in stored_boards(track, with_checks=True) if budget in (None, board.budget)]
        published = publish(track, boards, slice(offset, offset + limit))
        return HttpResponse(published.model_dump_json(), content_type="application/json; charset=utf-8")

    return unless_unchanged(request, version, respond)
