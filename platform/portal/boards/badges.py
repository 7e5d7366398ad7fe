"""Badges: a run's rank and status as a small picture, for a README."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from portal.audit.versions import boards_versions
from portal.boards.caching import cached, unless_unchanged
from portal.boards.ordering import ranks_of
from portal.reviews.selectors import verdict_on
from portal.submissions.models import Run, Submission
from portal.submissions.selectors import public_submissions
from portal.ui.budgets import at_budget, plain

# About the width of a character of the badge's font, and the space around a text.
CHARACTER, SPACE = 6.6, 12


@require_safe
def badge(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Send the badge of a public submission: of its run at `epsilon`, or of its first run."""
    submission = get_object_or_404(public_submissions(), pk=submission_id)
    run = _run(submission, request.GET.get("epsilon", ""))
    version = boards_versions([submission.track_id])[submission.track_id]

    def respond() -> HttpResponse:
        drawn = cached(version, f"badge {run.pk}", lambda: _drawn(submission, run))
        return HttpResponse(drawn, content_type="image/svg+xml")

    return unless_unchanged(request, version, respond)


def _run(submission: Submission, epsilon: str) -> Run:
    """Return the scored run at this ε. Raises `Http404` where there is none."""
    runs = submission.runs.filter(scored_at__isnull=False)
    found = [run for run in runs if epsilon in ("", at_budget(run.budget, "{}", plain))]
    if not found:
        raise Http404("no scored run at this ε")
    return found[0]


def _drawn(submission: Submission, run: Run) -> str:
    rank = ranks_of(submission.track, run.budget, [run.pk]).get(run.pk)
    label = "PFL-DocVQA" + at_budget(run.budget, " {}")
    status = verdict_on(submission).status.label
    value = f"#{rank}, {status}" if rank else "not ranked"
    left, right = (round(len(text) * CHARACTER + SPACE) for text in (label, value))
    sizes = {
        "left": left,
        "right": right,
        "width": left + right,
        "middle": left / 2,
        "value_at": left + right / 2,
    }
    return render_to_string("boards/badge.svg", {"label": label, "value": value, **sizes})
