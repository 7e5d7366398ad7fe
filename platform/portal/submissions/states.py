"""The states of submissions and runs: the allowed transitions, and the one function that makes them."""

from typing import Any

from django.db import models, transaction

from portal.accounts.models import User
from portal.audit.models import record
from portal.submissions.models import Run, RunState, Submission, SubmissionState

SUBMISSION_TRANSITIONS: dict[str, frozenset[str]] = {
    SubmissionState.DRAFT: frozenset({SubmissionState.SUBMITTED, SubmissionState.WITHDRAWN}),
    SubmissionState.SUBMITTED: frozenset({SubmissionState.WITHDRAWN}),
    SubmissionState.WITHDRAWN: frozenset(),
}

RUN_TRANSITIONS: dict[str, frozenset[str]] = {
    RunState.DRAFT: frozenset({RunState.QUEUED}),
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.REJECTED, RunState.FAILED}),
    RunState.RUNNING: frozenset({RunState.QUEUED, RunState.SCORED, RunState.REJECTED, RunState.FAILED}),
    # The organizers may evaluate again, for instance on a corrected test set.
    RunState.SCORED: frozenset({RunState.QUEUED}),
    RunState.REJECTED: frozenset({RunState.QUEUED}),
    RunState.FAILED: frozenset({RunState.QUEUED}),
}


class IllegalTransitionError(Exception):
    """A change that the table doesn't allow: a defect in the caller, or a race that it must handle."""


def move_submission(
    submission: Submission, state: SubmissionState, *, actor: User | None, **fields: Any
) -> None:
    """Move a submission to `state`, setting `fields` with it. The caller holds the row's lock."""
    move(submission, state, SUBMISSION_TRANSITIONS, actor, fields)


def move_run(run: Run, state: RunState, *, actor: User | None = None, **fields: Any) -> None:
    """Move a run to `state`, setting `fields` with it. The caller holds the row's lock."""
    move(run, state, RUN_TRANSITIONS, actor, fields)


def move(
    row: models.Model,
    state: str,
    table: dict[str, frozenset[str]],
    actor: User | None,
    fields: dict[str, Any],
    **details: Any,
) -> None:
    """Move a row to `state` as `table` allows, and write the audit entry with `details`: every state changes here.

    Raises `IllegalTransitionError` where the table doesn't allow it, or outside a transaction.
    """
    if not transaction.get_connection().in_atomic_block:
        raise IllegalTransitionError("States change inside a transaction only.")
    before: str = row.state  # type: ignore[attr-defined]
    if state not in table[before]:
        raise IllegalTransitionError(f"{type(row).__name__} {row.pk} can't go from {before} to {state}.")
    for name, value in {"state": state, **fields}.items():
        setattr(row, name, value)
    row.save(update_fields=["state", *fields])
    record(actor, f"{type(row).__name__.lower()}.{state}", row, before=before, **details)
