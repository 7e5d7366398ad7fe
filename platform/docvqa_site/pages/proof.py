"""The privacy proof of a verified result and the checklist by which it was accepted, where the team has agreed to it.

For everybody alike: in every other state there is no such page, for the team and reviewers either, who have their own.
"""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from docvqa_site.proofs.page_images import page_image
from docvqa_site.proofs.shown import shown_proof
from docvqa_site.reviews.proof_views import saved_file
from docvqa_site.reviews.publication import has_public_proof, public_checklist
from docvqa_site.submissions.models import Artifact, Submission
from docvqa_site.ui.caching import PRIVATE


@require_safe
def proof(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    artifact = _public_proof(submission_id)
    try:
        shown = shown_proof(
            artifact, lambda number: reverse("submissions:proof_page", args=[submission_id, number])
        )
    except FileNotFoundError as error:
        raise Http404 from error
    context = {
        "submission": artifact.submission,
        "proof": shown,
        "file_url": reverse("submissions:proof_file", args=[submission_id]),
        "checklist": public_checklist(artifact.submission),
    }
    response = render(request, "pages/proof.html", context)
    # It ends with the team's consent, so nobody keeps it.
    response["Cache-Control"] = PRIVATE
    return response


@require_safe
def file(_: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Send the file itself, which browsers save and never show."""
    return saved_file(_public_proof(submission_id))


@require_safe
def page(_: HttpRequest, submission_id: UUID, number: int) -> HttpResponse:
    return page_image(_public_proof(submission_id), number)


def _public_proof(submission_id: UUID) -> Artifact:
    """Return the newest version of a public proof. Raises `Http404` for any other."""
    submissions = Submission.objects.select_related("track").prefetch_related("reviews")
    submission = get_object_or_404(submissions, pk=submission_id)
    found = submission.proof() if has_public_proof(submission) else None
    if found is None:
        raise Http404
    return found
