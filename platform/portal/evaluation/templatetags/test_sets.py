"""What a track's page says about the parts of its test set."""

from typing import Any

from django import template
from django.utils import timezone

from portal.challenge.models import Track
from portal.evaluation.test_sets.parts import earliest_reveal, scored_test_set, tracks_on

register = template.Library()


@register.inclusion_tag("evaluation/test_set_parts.html")
def test_set_parts(track: Track) -> dict[str, Any]:
    """Show on which part of the test set scores are, and what is revealed when; nothing where it isn't split."""
    test_set = scored_test_set(track)
    tracks = tracks_on(test_set) if test_set else []
    return {
        "test_set": test_set,
        "others": [other for other in tracks if other != track],
        "earliest": earliest_reveal(tracks, timezone.now()),
    }
