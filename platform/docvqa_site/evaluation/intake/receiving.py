"""Receives what workers report on an evaluation: heartbeats, and how its steps ended.

Messages may come twice, late or out of order. Only those about the step that an active evaluation is at have
an effect; all others are logged and dropped, so that a dead attempt never overwrites a live one.

A report goes one way: `messages` verifies it, `facts` reads what the site knows, `judging` and `consequences` say what
it means and what follows, and `outcomes` writes that, all in one transaction.
"""

import logging
from datetime import datetime

from django.db import transaction

from docvqa_site.evaluation import clock
from docvqa_site.evaluation.intake.consequences import consequence_of
from docvqa_site.evaluation.intake.facts import gather
from docvqa_site.evaluation.intake.judging import judge
from docvqa_site.evaluation.intake.outcomes import carry_out, store
from docvqa_site.evaluation.intake.truncation import truncate_for_storage
from docvqa_site.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState
from docvqa_site.evaluation.queue import breaker
from docvqa_site.evaluation.queue.dispatch import dispatch_on_commit
from docvqa_site.evaluation.states import move_evaluation
from docvqa_site.submissions.models import Run, RunState
from docvqa_site.submissions.states import move_run
from evaluator.errors import shorten
from evaluator.messages.jobs import Progress, WorkerReport

logger = logging.getLogger(__name__)


def receive_progress(progress: Progress, now: datetime | None = None) -> None:
    """Store a worker's heartbeat."""
    now = now or clock.now()
    with transaction.atomic():
        evaluation = _begun(progress)
        if evaluation is None:
            return
        evaluation.done = progress.done
        evaluation.total = progress.total
        evaluation.remaining_s = progress.remaining_s
        evaluation.worker = shorten(progress.worker)
        evaluation.heartbeat_at = now
        evaluation.save(update_fields=["done", "total", "remaining_s", "worker", "heartbeat_at"])
        breaker.note_heartbeat(progress.step, evaluation.worker, now)


def receive_report(report: WorkerReport, now: datetime | None = None) -> None:
    """Store how a step ended, and begin what follows: the next step, the end of the run, or another attempt."""
    now = now or clock.now()
    with transaction.atomic():
        evaluation = _begun(report)
        if evaluation is None:
            return
        run = Run.objects.select_for_update().get(pk=evaluation.run_id)
        report = truncate_for_storage(report)
        facts = gather(evaluation, run, report, now)
        judgement = judge(report, facts)
        is_excused = not judgement.renews and store(judgement, facts, evaluation, run, now)
        consequence = consequence_of(judgement, evaluation, run, now, is_excused=is_excused)
        carry_out(consequence, evaluation, run, now)


def _begun(message: Progress | WorkerReport) -> Evaluation | None:
    """Return the evaluation that the message is about, its row locked; None if it has moved past the message.

    The first message on a queued step begins it.
    """
    evaluation = Evaluation.objects.select_for_update().filter(pk=message.evaluation).first()
    if (
        evaluation is None
        or evaluation.state not in ACTIVE_STATES
        or (evaluation.attempt, evaluation.step) != (message.attempt, message.step)
    ):
        logger.info(
            "Dropped a %s about attempt %d, step %s of evaluation %s: it is %s.",
            type(message).__name__,
            message.attempt,
            message.step,
            message.evaluation,
            f"{evaluation.state} at attempt {evaluation.attempt}, {evaluation.step}"
            if evaluation
            else "unknown",
        )
        return None
    if evaluation.state == EvaluationState.QUEUED:
        move_evaluation(evaluation, EvaluationState.RUNNING)
        run = Run.objects.select_for_update().get(pk=evaluation.run_id)
        if run.state == RunState.QUEUED:
            move_run(run, RunState.RUNNING)
        # There is room for another step in the broker.
        dispatch_on_commit()
    return evaluation
