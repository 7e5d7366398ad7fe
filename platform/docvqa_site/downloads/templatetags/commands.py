"""The commands of this site on its pages."""

from django import template

from docvqa_site.challenge.models import Track
from docvqa_site.downloads.commands import drafts_of, missing_files, other_budgets, track_commands

register = template.Library()


@register.inclusion_tag("downloads/track_commands.html")
def commands_of(track: Track) -> dict[str, object]:
    """Show the commands from nothing to a submission in the track."""
    return {
        "track": track,
        "blocks": track_commands(track),
        "drafts": drafts_of(track),
        "other_budgets": other_budgets(track),
        "has_files": not missing_files(track),
    }
