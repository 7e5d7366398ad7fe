"""The files by which everybody can recompute a run's figures: training record, communication log, and transcript."""

from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from docvqa_site.evaluation.display.results import PUBLIC_FILES
from docvqa_site.reviews.proof_views import saved_file
from docvqa_site.submissions.models import Artifact, SubmissionState
from docvqa_site.submissions.selectors import visible_submissions


@require_safe
def evidence(_: HttpRequest, submission_id: UUID, run_id: UUID, kind: str) -> HttpResponse:
    """Send the file of a run that a board lists; a record has its team's key, so not of an anonymous one."""
    if kind not in PUBLIC_FILES:
        raise Http404
    return saved_file(get_object_or_404(public_files(submission_id, run_id), kind=kind))


def public_files(submission_id: UUID, run_id: UUID) -> QuerySet[Artifact]:
    """Return the files of a run that everybody may read."""
    named = visible_submissions(AnonymousUser()).filter(
        pk=submission_id, state=SubmissionState.SUBMITTED, anonymous=False
    )
    files = Artifact.objects.filter(run__submission__in=named, run__scored_at__isnull=False)
    return files.filter(run=run_id, kind__in=PUBLIC_FILES).select_related("upload")
