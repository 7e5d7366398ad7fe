"""The parts of submissions' and tracks' pages that are about evaluations."""

from typing import Any

from django import template
from django.utils import timezone

from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.display.results import by_subject
from docvqa_site.evaluation.display.team_actions import team_actions_on
from docvqa_site.evaluation.test_sets.parts import earliest_reveal, scored_test_set, tracks_on
from docvqa_site.submissions.models import Submission
from docvqa_site.submissions.unresolved_challenges import challenges_against

register = template.Library()
register.filter("by_subject", by_subject)


@register.inclusion_tag("evaluation/team_actions.html")
def team_actions(submission: Submission) -> dict[str, Any]:
    """Show what happens now with a submission of the visitor's team, and what the team can do with it."""
    is_accounted = submission.track.kind.is_accounted
    unresolved_challenges = (
        challenges_against(submission).filter(team=submission.team_id) if is_accounted else ()
    )
    return {
        "submission": submission,
        "actions": team_actions_on(submission),
        "unresolved_challenges": unresolved_challenges,
    }


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
