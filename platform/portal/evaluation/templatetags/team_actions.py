"""The part of a submission's page that only its own team sees."""

from typing import Any

from django import template

from portal.evaluation.display.team_actions import team_actions_on
from portal.submissions.models import Submission
from portal.submissions.tries import tries_against

register = template.Library()


@register.inclusion_tag("evaluation/team_actions.html")
def team_actions(submission: Submission) -> dict[str, Any]:
    """Show what happens now with a submission of the visitor's team, and what the team can do with it."""
    lost_tries = tries_against(submission) if submission.track.kind.is_accounted else ()
    return {"submission": submission, "actions": team_actions_on(submission), "lost_tries": lost_tries}
