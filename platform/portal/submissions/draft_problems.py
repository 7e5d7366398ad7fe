"""The problems that prevent a draft from being submitted, which its page lists and `submit` raises."""

from datetime import datetime

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import ArtifactKind
from portal.challenge.models import Track
from portal.submissions.code import code_problems
from portal.submissions.models import Artifact, Run, RunState, Submission, SubmissionState
from portal.submissions.publication import visibility_problems
from portal.submissions.selectors import quota_of
from portal.teams.models import Team
from portal.ui.budgets import at_budget, plain
from portal.uploads.models import UploadState

# The checkpoint of a rejected or failed run may be submitted again.
TAKEN_STATES = [RunState.QUEUED, RunState.RUNNING, RunState.SCORED]


def problems_of(submission: Submission, now: datetime) -> list[Problem]:
    """Return everything that is missing or wrong. Certain only while the team's and the track's rows are locked."""
    return [
        *_closed(submission.track, now),
        *_visibility(submission, now),
        *_missing(submission),
        *code_problems(submission),
        *_duplicates(submission),
        *_over_quota(submission.team, submission.track, now),
    ]


def no_such_budget(track: Track, budget: float | None) -> ProblemError:
    """Return the error for a budget that the track has no board for."""
    return ProblemError.of(
        ErrorCode.SUBMISSION_BUDGET,
        expected=" or ".join(map(_budget, track.run_budgets())),
        found=_budget(budget),
    )


def _budget(budget: float | None) -> str:
    return at_budget(budget, "ε = {}", plain) or "no budget"


def _closed(track: Track, now: datetime) -> list[Problem]:
    if not (reason := track.closed_because(now)):
        return []
    message = f"The track is not accepting submissions right now. {reason}"
    return [Problem.of(ErrorCode.TRACK_CLOSED, message=message)]


def _visibility(submission: Submission, now: datetime) -> list[Problem]:
    phase = submission.track.phase_at(now)
    return visibility_problems(submission, phase) if phase else []


def _missing(submission: Submission) -> list[Problem]:
    track, runs = submission.track, list(submission.runs.all())
    if not runs:
        return ProblemError.of(
            ErrorCode.SUBMISSION_INCOMPLETE,
            message=_add_a_run(track),
            expected="at least one run",
            found="none",
        ).problems
    stored = submission.artifacts.filter(upload__state=UploadState.COMPLETED)
    present = set(stored.values_list("run", "kind"))
    roles: list[tuple[Run | None, ArtifactKind]] = [(None, kind) for kind in track.kind.submission_artifacts]
    roles += [(run, kind) for run in runs for kind in track.kind.run_artifacts]
    missing = [
        Problem.of(
            ErrorCode.ARTIFACT_MISSING,
            message=f"The {kind.replace('_', ' ')} is missing.",
            where=run.label if run else "for all runs",
        )
        for run, kind in roles
        if (run and run.pk, kind) not in present
    ]
    unknown = [
        no_such_budget(track, run.budget).problem for run in runs if run.budget not in track.run_budgets()
    ]
    return missing + unknown


def _add_a_run(track: Track) -> str:
    """Return what to do about a submission without a run."""
    budgets = list(filter(None, track.board_names()))
    choices = " or ".join([", ".join(budgets[:-1]), budgets[-1]] if len(budgets) > 1 else budgets)
    return f"Add at least one run (ε = {choices})." if choices else "Add a run."


def _duplicates(submission: Submission) -> list[Problem]:
    """Find the runs whose checkpoint is in the track already, whoever submitted it, or twice in this submission."""
    checkpoints = Artifact.objects.filter(kind=ArtifactKind.CHECKPOINT)
    own = list(
        checkpoints.filter(submission=submission).order_by("run__budget").select_related("run", "upload")
    )
    taken = checkpoints.filter(submission__track=submission.track_id, run__state__in=TAKEN_STATES)
    # A team may submit again what it has withdrawn; nobody else may.
    taken = taken.exclude(submission__team=submission.team_id, submission__state=SubmissionState.WITHDRAWN)
    seen = set(
        taken.filter(upload__sha256__in=[artifact.upload.sha256 for artifact in own]).values_list(
            "upload__sha256", flat=True
        )
    )
    problems = []
    for artifact in own:
        if artifact.upload.sha256 in seen and artifact.run:
            problems += ProblemError.of(
                ErrorCode.SUBMISSION_DUPLICATE,
                where=f"{artifact.run.label}, {artifact.upload.filename}",
                found=f"SHA-256 {artifact.upload.sha256}",
            ).problems
        seen.add(artifact.upload.sha256)
    return problems


def _over_quota(team: Team, track: Track, now: datetime) -> list[Problem]:
    quota = quota_of(team, track, now)
    if quota.next_slot is None:
        return []
    return ProblemError.of(
        ErrorCode.SUBMISSION_QUOTA,
        expected=f"{quota.limit} submissions in 24 hours at most",
        next_step=f"The next slot is free on {quota.next_slot:%d %B at %H:%M} UTC; platform errors cost none.",
    ).problems
