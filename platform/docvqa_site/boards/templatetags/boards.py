"""The final results of a track's closed phases, where pages say that ranks are final and link to them."""

from typing import Any

from django import template

from docvqa_site.boards.models import newest_results
from docvqa_site.challenge.models import Track

register = template.Library()


@register.inclusion_tag("boards/final_results.html")
def final_results(track: Track, *, brief: bool = False) -> dict[str, Any]:
    """Show links to the newest final results of each phase; nothing where no phase was closed."""
    return {"found": newest_results().filter(phase__track=track), "brief": brief}
