"""How a method is cited."""

import re
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.submissions.models import Submission
from portal.submissions.views import shown_submission

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "{}%&#_$"},
}


def bibtex(submission: Submission) -> str:
    """Return the entry of a submission; its key doesn't change when the method is renamed."""
    made = submission.submitted_at or submission.created_at
    fields = {
        "title": f"{{{_in_latex(submission.title)}}}",
        "author": f"{{{_in_latex(submission.team.name)}}}",
        "year": str(made.year),
        "howpublished": f"PFL-DocVQA benchmark, {_in_latex(submission.track.name)}",
        "url": settings.SITE_URL + submission.get_absolute_url(),
    }
    lines = [f"  {name:<12} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{pfl-docvqa-{str(submission.pk)[:8]},", *lines, "}"])


def _in_latex(text: str) -> str:
    return re.sub(r"[\\{}%&#_$~^]", lambda sign: LATEX[sign.group()], " ".join(text.split()))


@require_safe
def bibtex_file(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Send the entry of a submission that the visitor may see."""
    submission = shown_submission(request, submission_id)
    return HttpResponse(bibtex(submission) + "\n", content_type="application/x-bibtex; charset=utf-8")
