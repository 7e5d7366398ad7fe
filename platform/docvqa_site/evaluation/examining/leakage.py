"""Leakage, measured in an attempt of its own after a run has its score, which it can neither delay nor change.

Runs that have a rank are measured, with the leakage set that their track names at that time.
"""

from typing import Any

from django.db import transaction

from docvqa_site.accounts.models import User
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.states import move_evaluation
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults


def qualifies(run: Run, results: RunResults) -> bool:
    """Return whether the leakage of a run with these results is measured."""
    submission, track = run.submission, run.submission.track
    if not track.leakage_set or track.is_draft:
        # Of a draft, the test of its base weights goes through every step.
        return bool(track.leakage_set)
    return submission.state == SubmissionState.SUBMITTED and shortfall(run, results=results) is None


def begin(run: Run, **fields: Any) -> Evaluation:
    """Queue the measurement of a scored run, with `fields` of its row. The caller holds the run's lock."""
    return dispatch.start(run, Step.LEAKAGE, **fields)


def cancel(run: Run, *, actor: User | None = None) -> None:
    """End a measurement of the run that waits or runs, as the run is evaluated again."""
    for evaluation in run.evaluations.select_for_update().filter(step=Step.LEAKAGE, state__in=ACTIVE_STATES):
        move_evaluation(evaluation, EvaluationState.CANCELED, actor=actor, finished_at=clock.now())


@transaction.atomic
def measure(run: Run, *, again: bool = False) -> bool:
    """Queue the measurement of a run that qualifies and has none, or of any that qualifies; return whether it was."""
    run = Run.objects.select_for_update(of=("self",)).select_related("submission__track").get(pk=run.pk)
    is_wanted = again or run.results.leakage is None
    if not is_wanted or run.state != RunState.SCORED or not qualifies(run, run.results):
        return False
    if run.evaluations.filter(state__in=ACTIVE_STATES).exists():
        return False
    begin(run)
    return True
