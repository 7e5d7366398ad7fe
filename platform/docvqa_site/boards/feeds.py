"""The newest results of a track as an Atom feed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.syndication.views import Feed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.http import require_safe

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.boards import entries_at
from docvqa_site.boards.caching import unless_unchanged
from docvqa_site.boards.ordering import newest_places
from docvqa_site.boards.ranking import Entry
from docvqa_site.challenge.models import Track
from docvqa_site.ui.rounding import epsilon_text
from docvqa_site.ui.templatetags.ui import readable_bytes, score

LENGTH = 30


class NewestResults(Feed):  # type: ignore[type-arg]
    """The runs of a track that were scored last, whether they have a rank or not."""

    feed_type = Atom1Feed

    def get_object(self, request: HttpRequest, slug: str) -> Track:
        return get_object_or_404(Track, slug=slug)

    def title(self, track: Track) -> str:
        return f"PFL-DocVQA: new results in {track}"

    def link(self, track: Track) -> str:
        return f"/leaderboard/{track.slug}/"

    def items(self, track: Track) -> Sequence[tuple[datetime, Entry]]:
        places = newest_places(track, LENGTH)
        entries = entries_at(track, [place for _, place in places])
        return [(at, entries[place.run]) for at, place in places if place.run in entries]

    def item_title(self, item: Any) -> str:
        return f"{item[1].method} by {item[1].team}"

    def item_description(self, item: Any) -> str:
        results = item[1].results
        epsilon = "" if results.epsilon is None else f", ε = {epsilon_text(results.epsilon)}"
        sent = (
            "" if results.bytes_total is None else f", {readable_bytes(results.bytes_total)} of communication"
        )
        return f"ANLS {score(results.anls, results.decimals)}{epsilon}{sent}; {item[1].status.label}."

    def item_link(self, item: Any) -> str:
        return str(item[1].url)

    def item_guid(self, item: Any) -> str:
        return f"urn:uuid:{item[1].run}"

    def item_pubdate(self, item: Any) -> datetime:
        return item[0]  # type: ignore[no-any-return]


@require_safe
def newest(request: HttpRequest, slug: str) -> HttpResponse:
    """Send the feed of one track."""
    track = get_object_or_404(Track, slug=slug)
    version = boards_versions([track.pk])[track.pk]
    return unless_unchanged(request, version, lambda: NewestResults()(request, slug=slug))
