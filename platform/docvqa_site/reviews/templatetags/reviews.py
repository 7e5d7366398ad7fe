"""The link to the reviewers' queue in the site's menu, the rows of the queue, and a method's code."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.template.context import Context

from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.evaluation.display.results import EPSILON_COLUMNS, EpsilonColumn
from docvqa_site.evaluation.display.status import RunStatus
from docvqa_site.reviews import queue_rows
from docvqa_site.reviews.eligibility import may_organize
from docvqa_site.reviews.queue import waiting_for
from docvqa_site.reviews.selectors import awaiting_decisions, reviewable_submissions
from docvqa_site.submissions.code import code_files
from docvqa_site.submissions.models import Submission
from evaluator.messages.jobs import Epsilon

register = template.Library()
register.simple_tag(queue_rows.queue_rows)


@register.inclusion_tag("reviews/method_and_code.html")
def method_and_code(submission: Submission) -> dict[str, Any]:
    """Show what the team says about its method, and the attached files of its code."""
    return {"submission": submission, "files": code_files(submission)}


@register.simple_tag
def epsilons_by_run(
    runs: Sequence[RunStatus],
) -> list[tuple[EpsilonColumn, list[tuple[float | None, Epsilon | None]]]]:
    """Return each recomputed ε that boards have a column for, with the budget of every run and its value there."""
    return [
        (column, [(status.run.budget, column.of(status.run.results)) for status in runs])
        for column in EPSILON_COLUMNS
    ]


@register.filter
def in_menu(waiting: int) -> str:
    """Return the label of the queue's link, with how many proofs need the visitor's review."""
    return f"Reviews ({waiting})"


@register.simple_tag(takes_context=True)
def proofs_waiting(context: Context) -> int | None:
    """Return how many proofs wait for reviewers, whoever they are; None for those who neither review nor organize."""
    user: Any = context["user"]
    if not (is_reviewer(user) or may_organize(user)):
        return None
    return awaiting_decisions(reviewable_submissions(user)).count()


@register.simple_tag(takes_context=True)
def proofs_to_review(context: Context) -> int | None:
    """Return how many proofs need the visitor's review; None for those who review none."""
    # A page of an error may be rendered without a user.
    user: Any = context.get("user")
    if user is None or not is_reviewer(user):
        return None
    # The page of the queue has counted them, and others have looked up what speaks against the visitor.
    counted: int | None = context.get("waiting_proofs")
    return waiting_for(user, context.get("own_conflicts")) if counted is None else counted
