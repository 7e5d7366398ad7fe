"""The states of submissions, runs and artifacts: the allowed transitions, which `audit.transitions.move` makes.

The movers set `fields` with the state. Their callers hold the row's lock, of an artifact that of its submission. They
raise `IllegalTransitionError` as `move`.
"""

from collections.abc import Mapping
from typing import Any

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.transitions import Transitions, move
from docvqa_site.audit.versions import boards_changed
from docvqa_site.submissions.models import Artifact, ArtifactState, Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.signals import challenges_changed

SUBMISSION_TRANSITIONS: Transitions = {
    SubmissionState.DRAFT: frozenset({SubmissionState.SUBMITTED, SubmissionState.WITHDRAWN}),
    # It is a draft again when its team cancels it before its evaluation has begun.
    SubmissionState.SUBMITTED: frozenset({SubmissionState.WITHDRAWN, SubmissionState.DRAFT}),
    SubmissionState.WITHDRAWN: frozenset(),
}

RUN_TRANSITIONS: Transitions = {
    RunState.DRAFT: frozenset({RunState.QUEUED}),
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.REJECTED, RunState.FAILED, RunState.DRAFT}),
    RunState.RUNNING: frozenset({RunState.QUEUED, RunState.SCORED, RunState.REJECTED, RunState.FAILED}),
    # The organizers may evaluate again, for instance on a corrected test set.
    RunState.SCORED: frozenset({RunState.QUEUED}),
    RunState.REJECTED: frozenset({RunState.QUEUED}),
    RunState.FAILED: frozenset({RunState.QUEUED}),
}

# Of runs that are in the queue, or on a worker.
IN_EVALUATION = frozenset({RunState.QUEUED, RunState.RUNNING})

ARTIFACT_TRANSITIONS: Transitions = {
    ArtifactState.PENDING: frozenset({ArtifactState.ATTACHED, ArtifactState.STAGED}),
    ArtifactState.STAGED: frozenset({ArtifactState.ATTACHED}),
    # A revised proof takes its place. Any other file is replaced by deleting its row.
    ArtifactState.ATTACHED: frozenset({ArtifactState.SUPERSEDED}),
    ArtifactState.SUPERSEDED: frozenset(),
}


def move_submission(
    submission: Submission,
    state: SubmissionState,
    *,
    actor: User | None,
    details: Mapping[str, str] | None = None,
    **fields: Any,
) -> None:
    """Move a submission to `state`; `details` go into the audit entry."""
    was_listed = submission.state == SubmissionState.SUBMITTED
    move(submission, state, SUBMISSION_TRANSITIONS, actor, fields, **(details or {}))
    if was_listed:
        boards_changed(submission.track_id)


def change_listed(
    submission: Submission, actor: User | None, action: str, fields: Mapping[str, Any], **details: Any
) -> None:
    """Set fields that boards show of a submission, and write the audit entry of the action with `details`."""
    for name, value in fields.items():
        setattr(submission, name, value)
    submission.save(update_fields=list(fields))
    boards_changed(submission.track_id)
    record(actor, action, submission, **details)


def move_run(run: Run, state: RunState, *, actor: User | None = None, **fields: Any) -> None:
    was_listed, before = run.scored_at is not None, run.state
    move(run, state, RUN_TRANSITIONS, actor, fields)
    if was_listed or run.scored_at is not None:
        boards_changed(run.submission.track_id)
    if before in IN_EVALUATION and state not in IN_EVALUATION:
        challenges_changed.send(sender=Run, team=run.submission.team_id, track=run.submission.track_id)


def update_results(run: Run, **fields: Any) -> None:
    """Set `results` or `pending` of a run whose state stays. The caller holds the row's lock."""
    for name, value in fields.items():
        setattr(run, name, value)
    run.save(update_fields=list(fields))
    if run.scored_at is not None and "results" in fields:
        boards_changed(run.submission.track_id)


def move_artifact(artifact: Artifact, state: ArtifactState, *, actor: User, **fields: Any) -> None:
    upload = artifact.upload
    details = {"kind": artifact.kind, "sha256": upload.sha256, "size_bytes": upload.size_bytes}
    move(artifact, state, ARTIFACT_TRANSITIONS, actor, fields, **details)
