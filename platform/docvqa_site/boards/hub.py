"""Results for a model's page on the Hugging Face Hub, which reads them from YAML files in `.eval_results/`.

Each entry names the benchmark's data set on the Hub, a task of it, the value and the page that has the evidence. The
data set's name is a setting, without which there is nothing to export.
"""

from uuid import UUID

import yaml
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.submissions.selectors import public_submissions
from docvqa_site.ui.budgets import at_budget, plain
from evaluator.scoring.metrics import cut


@require_safe
def eval_results(_: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Send the results of a public submission."""
    if not settings.HUB_DATASET:
        raise Http404("no data set on the Hub is configured")
    submission = get_object_or_404(public_submissions(), pk=submission_id)
    runs = submission.runs.filter(scored_at__isnull=False)
    text = yaml.safe_dump([_entry(submission, run) for run in runs], sort_keys=False, allow_unicode=True)
    return HttpResponse(text, content_type="application/yaml; charset=utf-8")


def _entry(submission: Submission, run: Run) -> dict[str, object]:
    budget = at_budget(run.budget, "-epsilon-{}", plain)
    results = run.results
    epsilon = "" if results.epsilon is None else f", recomputed ε = {results.epsilon}"
    status = verdict_on(submission).status_of(shortfall(run))
    return {
        "dataset": {"id": settings.HUB_DATASET, "task_id": f"{submission.track.slug}{budget}"},
        "value": float(cut(results.anls or 0.0)),
        "date": f"{run.scored_at:%Y-%m-%d}",
        "source": {
            "url": settings.SITE_URL + submission.get_absolute_url(),
            "name": "PFL-DocVQA benchmark",
        },
        "notes": f"ANLS, {status}{epsilon}, {results.bytes_total} bytes of communication ({results.counting_label})",
    }
