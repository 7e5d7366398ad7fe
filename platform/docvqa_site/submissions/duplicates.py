"""The same checkpoint twice in a track: who submitted it before decides what its team reads.

Practice submissions may repeat any checkpoint, and keep nobody from submitting theirs. A checkpoint or training record
of a run that was judged (`docvqa_site.submissions.judged`) can't be submitted again, even if the run was withdrawn.
"""

from django.conf import settings
from django.db.models import QuerySet

from docvqa_site.challenge.models import Track
from docvqa_site.submissions.judged import JUDGED_KINDS, judged_files, judgment_in_words
from docvqa_site.submissions.models import Artifact, RunState, Submission, SubmissionState
from docvqa_site.teams.models import Team
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import ArtifactKind

# The checkpoint of a rejected or failed run may be submitted again.
TAKEN_STATES = [RunState.QUEUED, RunState.RUNNING, RunState.SCORED]
PRACTICE = "For a trial without a rank, submit it for practice."


def duplicate(team: Team, track: Track, sha256: str, where: str = "") -> Problem | None:
    """Return what keeps the team from submitting the checkpoint of this SHA-256 for a rank; None if nothing does.

    It names the team's own submission, and never that of another team.
    """
    taken = Artifact.objects.filter(
        kind=ArtifactKind.CHECKPOINT,
        upload__sha256=sha256,
        submission__track=track,
        submission__practice=False,
        run__state__in=TAKEN_STATES,
    )
    # A team may submit again what it has withdrawn; nobody else may.
    taken = taken.exclude(submission__team=team, submission__state=SubmissionState.WITHDRAWN)
    own = taken.filter(submission__team=team).select_related("submission").first()
    if own is not None:
        return _problem(
            where,
            sha256,
            f"Your team has already submitted this checkpoint, as “{own.submission.title}”.",
            f"See {settings.SITE_URL}{own.submission.get_absolute_url()}, or submit another checkpoint. {PRACTICE}",
        )
    if problem := _judged(track, sha256, where):
        return problem
    if taken.exists():
        return _problem(
            where,
            sha256,
            "This checkpoint is identical to one that another team has submitted.",
            "Equal settings, data, base weights and seeds give the same file. Train again with another seed: without "
            f"`seed` in its settings, `pfl train` draws one. {PRACTICE}",
        )
    return None


def _judged(track: Track, sha256: str, where: str) -> Problem | None:
    """Return what was judged of a run with this checkpoint or training record; None if nothing was."""
    found = judged_files(track, [sha256]).first()
    if found is None or found.run is None:
        return None
    words = judgment_in_words(found.run, found.get_kind_display())
    return _problem(
        where,
        sha256,
        f"{words[0].upper()}{words[1:]}",
        "This holds for the file, whoever submits it, until the organizers lift it. Appeal the decision, ask "
        f"the organizers to examine the run again, or submit another training run. {PRACTICE}",
    )


def duplicates_in(submission: Submission) -> list[Problem]:
    """Return the duplicates among the submission's checkpoints, of runs in the track and of each other.

    With them come the training records of runs that were judged.
    """
    if submission.practice:
        return []
    problems, seen = [], set()
    own = submission.artifacts.filter(kind__in=JUDGED_KINDS)
    for artifact in own.order_by("run__budget", "kind").select_related("run", "upload"):
        sha256 = artifact.upload.sha256
        where = (
            f"{artifact.run.label}, {artifact.upload.filename}" if artifact.run else artifact.upload.filename
        )
        if problem := _submitted_before(submission, artifact.kind, sha256, where):
            problems.append(problem)
        elif artifact.kind == ArtifactKind.CHECKPOINT and sha256 in seen:
            problems.append(
                _problem(where, sha256, "Another run of this submission has the same checkpoint.")
            )
        seen.add(sha256)
    return problems


def records_submitted_before(submission: Submission) -> QuerySet[Artifact]:
    """Return the team's other artifacts with a training record of this draft, of runs that count.

    That is allowed, but a record describes one checkpoint, which can't be submitted again.
    """
    own = submission.artifacts.filter(kind=ArtifactKind.TRAINING_RECORD)
    found = Artifact.objects.filter(
        kind=ArtifactKind.TRAINING_RECORD,
        upload__sha256__in=own.values("upload__sha256"),
        submission__team=submission.team,
        submission__practice=False,
        submission__state=SubmissionState.SUBMITTED,
        run__state__in=TAKEN_STATES,
    )
    return found.select_related("run", "submission")


def would_repeat(submission: Submission) -> bool:
    """Return whether a checkpoint of a practice submission can't be submitted for a rank, as it was already."""
    return any(
        duplicate(submission.team, submission.track, sha256) for sha256 in checkpoint_hashes(submission)
    )


def competing_submission(submission: Submission) -> Submission | None:
    """Return what the team has submitted for a rank with a checkpoint of this practice submission; None if nothing."""
    found = Submission.objects.filter(
        team=submission.team_id,
        track=submission.track_id,
        practice=False,
        state=SubmissionState.SUBMITTED,
        runs__state__in=TAKEN_STATES,
        runs__artifacts__kind=ArtifactKind.CHECKPOINT,
        runs__artifacts__upload__sha256__in=checkpoint_hashes(submission),
    )
    return found.first()


def checkpoint_hashes(submission: Submission) -> list[str]:
    """Return the SHA-256 of each of the submission's checkpoints."""
    checkpoints = submission.artifacts.filter(kind=ArtifactKind.CHECKPOINT)
    return list(checkpoints.values_list("upload__sha256", flat=True))


def reject_duplicate(submission: Submission, kind: ArtifactKind, sha256: str, filename: str) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_DUPLICATE`) for a file that can't be submitted in this draft."""
    if not submission.practice and (problem := _submitted_before(submission, kind, sha256, filename)):
        raise ProblemError(problem)


def _submitted_before(submission: Submission, kind: str, sha256: str, where: str) -> Problem | None:
    """Return what keeps a file of this kind from being submitted again; only checkpoints must be new."""
    if kind == ArtifactKind.CHECKPOINT:
        return duplicate(submission.team, submission.track, sha256, where)
    return _judged(submission.track, sha256, where)


def _problem(where: str, sha256: str, message: str, next_step: str = "") -> Problem:
    return Problem.of(
        ErrorCode.SUBMISSION_DUPLICATE,
        message=message,
        where=where,
        found=f"SHA-256 {sha256}",
        next_step=next_step,
    )
