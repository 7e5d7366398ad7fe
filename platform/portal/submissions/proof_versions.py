"""Revised privacy proofs: what was submitted takes a new version of its proof, which is then reviewed again.

A revision uses no quota slot, since nothing is evaluated again. All versions are kept, for the reviewers to compare.
"""

from datetime import datetime

from django.utils import timezone

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from portal.accounts.models import User
from portal.audit.models import record
from portal.submissions.locks import wrong_state
from portal.submissions.models import Artifact, ArtifactState, Submission, SubmissionState
from portal.submissions.quota import WINDOW
from portal.submissions.signals import proof_revised
from portal.submissions.states import move_artifact

# Of one submission: each takes the time of all of its reviewers.
MAX_VERSIONS = 10
REVISIONS_PER_DAY = 2


def reject_revision(submission: Submission, sha256: str, now: datetime | None = None) -> None:
    """Raise `ProblemError` unless the submission, whose row is locked, takes this proof as a revised one.

    `E_SUBMISSION_STATE` when it isn't submitted, or its proof was revised too often.
    """
    now = now or timezone.now()
    versions = _versions(submission)
    if submission.state != SubmissionState.SUBMITTED or not versions:
        raise wrong_state(submission, "a submitted submission with a proof")
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


def add_version(revised: Artifact, actor: User) -> None:
    """Make a pending proof the newest version; the caller holds the submission's lock."""
    submission, now = revised.submission, timezone.now()
    newest = _versions(submission)[-1]
    move_artifact(newest, ArtifactState.SUPERSEDED, actor=actor, superseded_at=now)
    move_artifact(revised, ArtifactState.ATTACHED, actor=actor, created_at=now, version=newest.version + 1)
    record(
        actor,
        "submission.proof_revised",
        submission,
        version=revised.version,
        sha256=revised.upload.sha256,
        size_bytes=revised.upload.size_bytes,
    )
    # Received by `portal.reviews.services.reopen`.
    proof_revised.send(sender=Submission, artifact=revised, actor=actor)


def _versions(submission: Submission) -> list[Artifact]:
    proofs = submission.artifacts.filter(kind=ArtifactKind.PRIVACY_PROOF)
    return list(proofs.select_related("upload").order_by("version"))
