"""How a method is cited."""

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.submissions.models import Submission
from portal.submissions.views import shown_submission
from portal.ui.bibtex import entry, in_latex


def bibtex(submission: Submission) -> str:
    """Return the entry of a submission; its key doesn't change when the method is renamed."""
    made = submission.submitted_at or submission.created_at
    fields = {
        "title": f"{{{in_latex(submission.title)}}}",
        "author": f"{{{in_latex(submission.author)}}}",
        "year": str(made.year),
        "howpublished": f"PFL-DocVQA benchmark, {in_latex(submission.track.name)}",
        "url": settings.SITE_URL + submission.get_absolute_url(),
    }
    return entry(f"pfl-docvqa-{str(submission.pk)[:8]}", fields)


@require_safe
def bibtex_file(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Send the entry of a submission that the visitor may see."""
    submission = shown_submission(request, submission_id)
    return HttpResponse(bibtex(submission) + "\n", content_type="application/x-bibtex; charset=utf-8")
