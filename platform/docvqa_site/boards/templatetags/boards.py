"""The part of a track's page that is about its closed phases."""

from typing import Any

from django import template

from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import Track

register = template.Library()


@register.inclusion_tag("boards/final_results.html")
def final_results(track: Track) -> dict[str, Any]:
    """Show links to the final results of the track's closed phases; nothing where there are none."""
    return {"found": FinalResults.objects.filter(phase__track=track).select_related("phase")}
