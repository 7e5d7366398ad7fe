"""Uploads over the API: check a file's beginning, announce it, ask for its parts' addresses, PUT them, complete."""

from uuid import UUID

from ninja import Router

from docvqa_site.api.authentication import ApiRequest, team_in
from docvqa_site.proofs.shown import display_of
from docvqa_site.submissions import services as submissions
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.submissions.selectors import own_submission, own_upload
from docvqa_site.uploads import services
from docvqa_site.uploads.parts import Part
from evaluator.messages.file_api import (
    NewFile,
    NewUpload,
    PartUrl,
    PartUrls,
    StoredArtifact,
    StoredParts,
    UploadPart,
    UploadStatus,
    WantedParts,
)
from evaluator.messages.jobs import ArtifactKind

router = Router(tags=["uploads"])


@router.post("/check", response={204: None}, summary="Check the beginning of a file")
def check_head(request: ApiRequest, body: NewFile) -> None:
    """Rejects a file with a wrong beginning, so you don't have to compute its SHA-256.  Nothing is stored."""
    _place_checked(request, body)


@router.post("", response=UploadStatus, summary="Start or resume an upload")
def start_upload(request: ApiRequest, body: NewUpload) -> UploadStatus:
    """Returns the existing upload of the same file to the same place, if any."""
    submission, run = _place_checked(request, body)
    upload = submissions.start_upload(
        submission,
        run,
        body.kind,
        request.auth,
        filename=body.filename,
        size_bytes=body.size_bytes,
        sha256=body.sha256,
    )
    return UploadStatus.model_validate(upload)


def _place_checked(request: ApiRequest, body: NewFile) -> tuple[Submission, Run | None]:
    """Return where the file belongs, after a look at its beginning if that was sent."""
    submission = own_submission(team_in(request), body.submission)
    run = submission.runs.get(pk=body.run) if body.run else None
    submissions.check_head(
        submission, run, body.kind, filename=body.filename, size_bytes=body.size_bytes, head=body.head
    )
    return submission, run


@router.get("/{upload_id}/parts", response=StoredParts, summary="List stored parts")
def list_parts(request: ApiRequest, upload_id: UUID) -> StoredParts:
    upload = own_upload(team_in(request), upload_id)
    return StoredParts(parts=[UploadPart.model_validate(part) for part in services.stored_parts(upload)])


@router.post("/{upload_id}/part-urls", response=PartUrls, summary="Get addresses for uploading parts")
def part_urls(request: ApiRequest, upload_id: UUID, body: WantedParts) -> PartUrls:
    """Request addresses just before use: each expires within minutes and accepts one part of this size and SHA-256."""
    upload = own_upload(team_in(request), upload_id)
    parts = [Part(part.number, part.size_bytes, part.sha256) for part in body.parts]
    return PartUrls(
        urls=[
            PartUrl(number=url.number, url=request.build_absolute_uri(url.url), headers=url.headers)
            for url in services.part_urls(upload, parts)
        ]
    )


@router.post("/{upload_id}/complete", response=StoredArtifact, summary="Complete the upload")
def complete_upload(request: ApiRequest, upload_id: UUID) -> StoredArtifact:
    """Assembles the file and attaches it to the draft, replacing an earlier file. Can be called again.

    A revised proof is staged: send it to the reviewers with `POST submissions/{id}/revision`.

    For a training record, the response contains the challenge for the run's annex: the same for the same record,
    and none for another record with the same run token. For a transcript whose messages are too large to attach whole,
    it contains the challenge that draws the rounds to open. For a privacy proof, it says which parts reviewers can't
    see.
    """
    upload = own_upload(team_in(request), upload_id)
    attached = submissions.attach_upload(upload, request.auth)
    artifact = attached.artifact
    run = artifact.run if artifact.kind in (ArtifactKind.TRAINING_RECORD, ArtifactKind.TRANSCRIPT) else None
    is_proof = artifact.kind == ArtifactKind.PRIVACY_PROOF
    return StoredArtifact(
        artifact=artifact.pk,
        kind=artifact.kind,
        size_bytes=upload.size_bytes,
        sha256=upload.sha256,
        challenge=(run.challenge or None) if run else None,
        drawn_rounds=run.rounds_to_draw if run and run.challenge else None,
        not_displayed=display_of(upload).unshown if is_proof else "",
        removed=attached.removed,
    )


@router.delete("/{upload_id}", response={204: None}, summary="Abort an upload")
def abort_upload(request: ApiRequest, upload_id: UUID) -> None:
    services.abort(own_upload(team_in(request), upload_id))
