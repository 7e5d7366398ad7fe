"""The files of runs: those by which everybody can recompute their figures, and for a team all of its own."""

from pathlib import PurePath
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.evaluation.display.results import PUBLIC_FILES
from docvqa_site.pages.file_names import stem_of
from docvqa_site.reviews.proof_views import saved_file
from docvqa_site.submissions.models import Artifact, SubmissionState
from docvqa_site.submissions.selectors import visible_submissions
from docvqa_site.submissions.views import own_or_404
from docvqa_site.uploads.models import UploadState


@require_safe
def evidence(_: HttpRequest, submission_id: UUID, run_id: UUID, kind: str) -> HttpResponse:
    """Send the file of a run that a board lists; a record has its team's key, so not of an anonymous one."""
    if kind not in PUBLIC_FILES:
        raise Http404
    found = get_object_or_404(public_files(submission_id, run_id), kind=kind)
    stem = stem_of(found.submission, found.run)
    return saved_file(found, f"{stem}-{PurePath(found.upload.filename).name}")


@login_required
@require_safe
def own_file(request: UserRequest, submission_id: UUID, artifact_id: UUID) -> HttpResponse:
    """Send a file of the team's own submission, as long as the site has it. Those of other teams answer 404."""
    files = own_or_404(request, submission_id).artifacts.filter(upload__state=UploadState.COMPLETED)
    return saved_file(get_object_or_404(files.select_related("upload"), pk=artifact_id))


def public_files(submission_id: UUID, run_id: UUID) -> QuerySet[Artifact]:
    """Return the files of a run that everybody may read."""
    named = visible_submissions(AnonymousUser()).filter(
        pk=submission_id, state=SubmissionState.SUBMITTED, anonymous=False
    )
    files = Artifact.objects.filter(run__submission__in=named, run__scored_at__isnull=False)
    return files.filter(run=run_id, kind__in=PUBLIC_FILES).select_related(
        "upload", "run", "submission__track"
    )
