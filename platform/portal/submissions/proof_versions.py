"""Revised privacy proofs: what was submitted takes a new version of its proof, which is then reviewed again.

A revision uses no quota slot, since nothing is evaluated again. All versions are kept, for the reviewers to compare.
"""

from datetime import datetime

from django.utils import timezone

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from portal.accounts.models import User
from portal.audit.models import record
from portal.submissions.models import Artifact, Submission, SubmissionState
from portal.submissions.quota import WINDOW
from portal.submissions.signals import proof_revised
from portal.uploads.models import Upload

# Of one submission: each takes the time of all of its reviewers.
MAX_VERSIONS = 10
REVISIONS_PER_DAY = 2


def reject_revision(submission: Submission, sha256: str, now: datetime | None = None) -> None:
    """Raise `ProblemError` unless the submission, whose row is locked, takes this proof as a revised one.

    `E_SUBMISSION_STATE` when it isn't submitted, or its proof was revised too often.
    """
    now = now or timezone.now()
    versions = list(_versions(submission))
    if submission.state != SubmissionState.SUBMITTED or not versions:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            expected="a submitted submission with a proof",
            found=f"one that is {submission.state}",
        )
    if any(version.upload.sha256 == sha256 for version in versions):
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="This version of the proof was already submitted.",
            next_step="Choose the revised file.",
        )
    lately = [version for version in versions[1:] if version.created_at > now - WINDOW]
    if len(versions) >= MAX_VERSIONS or len(lately) >= REVISIONS_PER_DAY:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="Too many revisions of the proof.",
            expected=f"{REVISIONS_PER_DAY} revisions in 24 hours and {MAX_VERSIONS} versions at most",
            found=f"{len(lately)} revisions in 24 hours, {len(versions)} versions",
            next_step="Wait for the reviewers, or upload another revision tomorrow.",
        )


def add_version(submission: Submission, upload: Upload, actor: User) -> Artifact:
    """Make the uploaded file the newest version of the proof; the caller holds the submission's lock."""
    versions = list(_versions(submission))
    Artifact.objects.filter(pk=versions[-1].pk).update(superseded_at=timezone.now())
    artifact = Artifact.objects.create(
        submission=submission,
        kind=ArtifactKind.PRIVACY_PROOF,
        upload=upload,
        version=versions[-1].version + 1,
    )
    record(
        actor,
        "submission.proof_revised",
        submission,
        version=artifact.version,
        sha256=upload.sha256,
        size_bytes=upload.size_bytes,
    )
    # Received by `portal.reviews.services.reopen`.
    proof_revised.send(sender=Submission, artifact=artifact, actor=actor)
    return artifact


def _versions(submission: Submission) -> "list[Artifact]":
    proofs = submission.artifacts.filter(kind=ArtifactKind.PRIVACY_PROOF)
    return list(proofs.select_related("upload").order_by("version"))
