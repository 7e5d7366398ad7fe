"""The part of a submission's page that only its own team sees."""

from typing import Any

from django import template

from portal.evaluation.display.team_actions import team_actions_on
from portal.submissions.models import Submission

register = template.Library()


@register.inclusion_tag("evaluation/team_actions.html")
def team_actions(submission: Submission) -> dict[str, Any]:
    """Show what happens now with a submission of the visitor's team, and what the team can do with it."""
    return {"submission": submission, "actions": team_actions_on(submission)}
