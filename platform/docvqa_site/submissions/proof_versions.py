"""Revised privacy proofs: what was submitted takes a new version of its proof, which is then reviewed again.

A revised proof is staged first: its team reads it as the reviewers will, and sends it with a note, or discards it.
A revision uses no quota slot, since nothing is evaluated again. All versions are kept, for the reviewers to compare.
"""

from datetime import datetime
from itertools import islice
from typing import Any

from django.db import transaction
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.submissions.locks import lock_submission, wrong_state
from docvqa_site.submissions.models import Artifact, ArtifactState, Submission, SubmissionState
from docvqa_site.submissions.quota import WINDOW
from docvqa_site.submissions.required import MAX_BYTES
from docvqa_site.submissions.signals import display_asked, proof_revised
from docvqa_site.submissions.states import move_artifact
from docvqa_site.uploads import services as uploads
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.gaps import gaps_in, is_text
from evaluator.messages.jobs import ArtifactKind

# Of one submission: each takes the time of all of its reviewers.
MAX_VERSIONS = 10
REVISIONS_PER_DAY = 2
# Of a text. One of nothing but gaps floods no page.
MAX_GAPS = 20


def proof_problems(proof: Upload) -> list[Problem]:
    """Return what keeps a proof from its reviewers: gaps, pages that can't be shown, or a store that can't give it."""
    return [*_gaps(proof), *display_problems(proof)]


def display_problems(proof: Upload) -> list[Problem]:
    """Return why reviewers couldn't see the pages of a proof; none while they are being drawn."""
    answers: list[tuple[Any, Any]] = display_asked.send(sender=Submission, upload=proof)
    return [problem for _, problems in answers for problem in problems]


def _gaps(proof: Upload) -> list[Problem]:
    if not is_text(proof.filename):
        return []
    try:
        with current_store().open(proof.store_key) as file:
            content = file.read(MAX_BYTES[ArtifactKind.PRIVACY_PROOF])
    except FileNotFoundError:
        return []
    except ProblemError as error:
        return list(error.problems)
    return list(islice(gaps_in(content, proof.filename, then="upload the proof again"), MAX_GAPS))


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


def stage(revised: Artifact, actor: User) -> None:
    """Make a pending proof the staged one, in place of another; the caller holds the submission's lock."""
    submission = revised.submission
    discard_staged(submission, actor)
    version = _versions(submission)[-1].version + 1
    move_artifact(revised, ArtifactState.STAGED, actor=actor, created_at=timezone.now(), version=version)


@transaction.atomic
def discard_staged(submission: Submission, actor: User) -> None:
    """Remove the staged proof, if there is one."""
    for staged in Artifact.staged.filter(submission=submission).select_related("upload"):
        staged.delete()
        uploads.discard(staged.upload, actor=actor)


@transaction.atomic
def send_revision(submission: Submission, note: str, actor: User) -> Artifact:
    """Make the staged proof the newest version, with a note to the reviewers on what changed.

    Raises `ProblemError`: `E_SUBMISSION_STATE` when no proof is staged, as `reject_revision`, and the problems of the
    proof itself, such as `E_SUBMISSION_INCOMPLETE` when it has gaps.
    """
    submission, now = lock_submission(submission.pk), timezone.now()
    revised = Artifact.staged.filter(submission=submission).select_related("upload").first()
    if revised is None:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="There is no revised proof to send.",
            next_step="Upload the revised proof first.",
        )
    reject_revision(submission, revised.upload.sha256, now)
    if problems := proof_problems(revised.upload):
        raise ProblemError(*problems)
    newest = _versions(submission)[-1]
    move_artifact(newest, ArtifactState.SUPERSEDED, actor=actor, superseded_at=now)
    move_artifact(revised, ArtifactState.ATTACHED, actor=actor, created_at=now, note=note)
    record(
        actor,
        "submission.proof_revised",
        submission,
        version=revised.version,
        sha256=revised.upload.sha256,
        size_bytes=revised.upload.size_bytes,
        note=note,
    )
    # Received by `docvqa_site.reviews.services.reopen`.
    proof_revised.send(sender=Submission, artifact=revised, actor=actor)
    return revised


def _versions(submission: Submission) -> list[Artifact]:
    proofs = submission.artifacts.filter(kind=ArtifactKind.PRIVACY_PROOF)
    return list(proofs.select_related("upload").order_by("version"))
