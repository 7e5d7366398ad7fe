"""Changes that organizers and teams request."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Max, QuerySet, prefetch_related_objects

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.transitions import IllegalTransitionError
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.intake.outcomes import requeue
from docvqa_site.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState
from docvqa_site.evaluation.states import move_evaluation
from docvqa_site.submissions.locks import lock_submission
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.quota import RETURNED_SLOTS, returns_slot
from docvqa_site.submissions.selectors import canceled_times, expired_files
from docvqa_site.submissions.states import move_run, move_submission
from docvqa_site.submissions.team_news import notify_of_new_evaluation
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.states import FINAL_STATES


def evaluate_again(run: Run, *, actor: User, reason: str = "") -> Evaluation:
    """Evaluate a scored, rejected or failed run again, and notify its team with the reason.

    Raises `IllegalTransitionError` in any other state, `ProblemError` (`E_ARTIFACT_MISSING`) when a file of the run was
    removed by a rule of retention.
    """
    with transaction.atomic():
        # First, as those who report on it lock it: leakage may be measured meanwhile.
        list(run.evaluations.select_for_update().filter(state__in=ACTIVE_STATES))
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.state not in FINAL_STATES:
            raise IllegalTransitionError(f"Run {run.pk} is {run.state}: its evaluation is not finished.")
        if expired := expired_files(run):
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING,
                message="The run can't be evaluated again: its files were deleted under the retention rules.",
                found=f"removed: {', '.join(expired)}",
                next_step="Its results stay unchanged; the team can submit the method again.",
            )
        record(actor, "run.evaluated_again", run, reason=reason)
        notify_of_new_evaluation(run, reason)
        return requeue(run, actor=actor)


def may_cancel(submission: Submission) -> bool:
    """Return whether no run of a submitted submission has begun to be evaluated."""
    runs = list(submission.runs.all())
    is_waiting = submission.state == SubmissionState.SUBMITTED and {run.state for run in runs} == {
        RunState.QUEUED
    }
    return is_waiting and not _was_evaluated(submission, runs)


def _was_evaluated(submission: Submission, runs: list[Run]) -> bool:
    """Return whether a run was evaluated before, so that it waits because the organizers have it evaluated again."""
    prefetch_related_objects(runs, "evaluations")
    ended = {EvaluationState.PASSED, EvaluationState.REJECTED}
    has_ended = any(attempt.state in ended for run in runs for attempt in run.evaluations.all())
    return submission.refunded_at is not None or has_ended


@transaction.atomic
def cancel(submission: Submission, *, actor: User) -> None:
    """Make a draft again of a submission whose runs all wait; its quota slot is free again.

    Raises `ProblemError`: `E_SUBMISSION_STATE` when it isn't submitted, or a run of it has begun; `E_SUBMISSION_QUOTA`
    when the team has canceled too often lately. No lock makes that number exact: only what is submitted can be
    canceled, so the quota bounds what several requests at once may add.
    """
    # In the order in which the intake locks them: a worker's first heartbeat comes before this, or after.
    waiting = Evaluation.objects.filter(run__submission=submission, state__in=ACTIVE_STATES)
    evaluations = list(waiting.select_for_update(of=("self",)).order_by("pk"))
    runs = list(Run.objects.select_for_update().filter(submission=submission).order_by("pk"))
    current = lock_submission(submission.pk)
    begun = [run for run in runs if run.state != RunState.QUEUED]
    if current.state != SubmissionState.SUBMITTED or begun or _was_evaluated(current, runs):
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="The submission can't be canceled: its evaluation has started, or it isn't submitted.",
            expected="a submission with no run started",
            found=f"{begun[0].label} {begun[0].state}" if begun else f"one that is {current.state}",
            next_step="Reload its page. What is submitted can be withdrawn, which can't be undone.",
        )
    now = clock.now()
    if not returns_slot(canceled_times(submission.team, submission.track, now), now):
        raise ProblemError.of(
            ErrorCode.SUBMISSION_QUOTA,
            message="Your team has canceled too many submissions in this track.",
            expected=f"at most {RETURNED_SLOTS} in 24 hours",
            next_step="Let the evaluation continue, or withdraw the submission permanently (it still counts "
            "against your quota).",
        )
    for evaluation in evaluations:
        move_evaluation(evaluation, EvaluationState.CANCELED, actor=actor, finished_at=now)
    for run in runs:
        move_run(run, RunState.DRAFT, actor=actor)
    move_submission(
        current,
        SubmissionState.DRAFT,
        actor=actor,
        submitted_at=None,
        phase=None,
        published_at=None,
        alias="",
    )
    submission.state, submission.submitted_at = current.state, current.submitted_at


def failed_since(moment: datetime) -> QuerySet[Run]:
    """Return the runs that have failed through the platform's fault since then and were not queued again."""
    failed = Run.objects.filter(state=RunState.FAILED).annotate(failed_at=Max("evaluations__finished_at"))
    return failed.filter(failed_at__gte=moment).order_by("failed_at")


def requeue_failed(runs: Iterable[Run], *, actor: User) -> list[Run]:
    """Queue again those of the runs that have failed, each with all of its tries, and return them.

    A quota slot that was given back stays with the team: the run is evaluated without one. A submission gets its slot
    back once, so the run gives back nothing if it fails again.
    """
    return [run for run in runs if _requeue_failed(run, actor)]


@transaction.atomic
def _requeue_failed(run: Run, actor: User) -> bool:
    # One transaction for each run, so that no lock is held while another is waited for.
    current = Run.objects.select_for_update().filter(pk=run.pk, state=RunState.FAILED).first()
    if current is None:
        return False
    notify_of_new_evaluation(current, "the platform failed, which is repaired")
    requeue(current, actor=actor)
    return True
