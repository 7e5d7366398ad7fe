"""The files of one's own submissions over the API."""

from uuid import UUID

from django.conf import settings
from ninja import Router

from docvqa_site.api.authentication import ApiRequest, team_in
from docvqa_site.api.responses import response_of
from docvqa_site.submissions.selectors import own_submission
from docvqa_site.uploads.models import UploadState
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.team_api import DownloadUrl, OwnArtifact

router = Router(tags=["submissions"])


@router.get(
    "/{submission_id}/artifacts", response=list[OwnArtifact], summary="List the files of a submission"
)
def list_artifacts(request: ApiRequest, submission_id: UUID) -> list[OwnArtifact]:
    """The list includes all versions of a proof."""
    found = own_submission(team_in(request), submission_id).artifacts.select_related("upload")
    return [
        response_of(
            OwnArtifact,
            artifact.upload,
            id=artifact.pk,
            kind=artifact.kind,
            run=artifact.run_id,
            version=artifact.version,
            superseded_at=artifact.superseded_at,
        )
        for artifact in found
    ]


@router.post(
    "/{submission_id}/artifacts/{artifact_id}/download-url",
    response=DownloadUrl,
    summary="Get a download address for a file",
)
def download_url(request: ApiRequest, submission_id: UUID, artifact_id: UUID) -> DownloadUrl:
    """Anyone with the address can download the file until it expires, so read-only tokens can't get one."""
    artifacts = own_submission(team_in(request), submission_id).artifacts.select_related("upload")
    upload = artifacts.get(pk=artifact_id).upload
    if upload.state != UploadState.COMPLETED:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="This file was deleted under the retention rules.",
            found=f"a file that is {upload.state}",
            next_step="Only its size and SHA-256 are kept.",
        )
    seconds = settings.DOWNLOAD_URL_SECONDS
    url = current_store().download_url(upload.store_key, upload.filename, seconds)
    return DownloadUrl(url=request.build_absolute_uri(url), expires_in_s=seconds)
