"""The names under which files of a method and its runs are saved, different for each method, track and ε."""

from django.utils.text import slugify

from docvqa_site.submissions.models import Run, Submission
from docvqa_site.ui.budgets import at_budget, plain

MOST_CHARACTERS = 60


def stem_of(submission: Submission, run: Run | None = None) -> str:
    """Return the track, the method, and where one is named the run's ε, such as "track-2-dp-lora-epsilon-4"."""
    method = slugify(submission.title)[:MOST_CHARACTERS].strip("-") or str(submission.pk)[:8]
    budget = at_budget(run.budget, "-epsilon-{}", plain) if run else ""
    return f"{submission.track.slug}-{method}{budget}"
