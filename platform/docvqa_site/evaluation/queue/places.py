"""The places of steps in their queues: who is next, and how many go before.

A queued step is one of three: it was sent to the broker and is taken next, in the order of sending; it waits here, in
the order of its turn and ticket; or it may not begin yet, after a platform fault, and has no place until then. Leakage
is measured when no score waits, and takes no turn of its team. The queue from which steps are sent and the place that
people see are made from the same conditions.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Case, F, Q, QuerySet, When

from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepQueue, TeamTurn
from docvqa_site.evaluation.queue.turns import TakenTurn, next_turn, retry_turn
from evaluator.messages.jobs import EVALUATOR_QUEUE, MODEL_STEPS, SCORING_QUEUE, Step

# The model waits for a GPU; all other steps share the CPU workers.
QUEUES = {step: SCORING_QUEUE if step in MODEL_STEPS else EVALUATOR_QUEUE for step in Step}
STEPS = {name: [step for step in Step if QUEUES[step] == name] for name in (EVALUATOR_QUEUE, SCORING_QUEUE)}

# At a time; others follow at the next look, and until then are counted behind them.
MOST_JOINING = 500

IS_LEAKAGE = Q(step=Step.LEAKAGE)
ORDER = (
    Case(When(IS_LEAKAGE, then=1), default=0),
    F("turn").asc(nulls_last=True),
    F("ticket").asc(nulls_last=True),
    "created_at",
    "pk",
)


def queued(queue: str) -> QuerySet[Evaluation]:
    """Return the evaluations whose step is queued there, whether it was sent or not."""
    return Evaluation.objects.filter(state=EvaluationState.QUEUED, step__in=STEPS[queue])


def sent(queue: str) -> QuerySet[Evaluation]:
    """Return the evaluations whose step was sent and has not begun, in the order of sending."""
    return queued(queue).filter(sent_at__isnull=False).order_by("sent_at", *ORDER)


def waiting(queue: str, now: datetime) -> QuerySet[Evaluation]:
    """Return the evaluations whose step may be sent, the next one first."""
    return queued(queue).filter(_may_begin(now), sent_at__isnull=True).order_by(*ORDER)


def take_turns(queue: StepQueue) -> None:
    """Give the steps that have joined the queue their turns and tickets. The caller holds the queue's lock."""
    joined = list(
        queued(queue.pk)
        .filter(turn__isnull=True)
        .order_by("step_queued_at", "created_at", "pk")
        .select_related("run__submission")
        .select_for_update(skip_locked=True, of=("self",))[:MOST_JOINING]
    )
    if not joined:
        return
    taken = _taken_turns(queue, {evaluation.run.submission.team_id for evaluation in joined})
    for evaluation in joined:
        queue.ticket += 1
        evaluation.ticket = queue.ticket
        evaluation.turn = _turn(queue, evaluation, taken)
    Evaluation.objects.bulk_update(joined, ["turn", "ticket"])
    _store_taken_turns(queue, taken)
    queue.save(update_fields=["ticket"])


def places(evaluations: Iterable[Evaluation], now: datetime) -> dict[UUID, int]:
    """Return the place, from 1, of each of the queued evaluations that has one, in one query for each queue."""
    in_queues = {QUEUES[Step(evaluation.step)] for evaluation in evaluations}
    found: dict[UUID, int] = {}
    for queue in in_queues:
        in_order = queued(queue).filter(Q(sent_at__isnull=False) | _may_begin(now))
        keys = in_order.order_by(F("sent_at").asc(nulls_last=True), *ORDER).values_list("pk", flat=True)
        found |= {key: place for place, key in enumerate(keys, 1)}
    return found


def _may_begin(now: datetime) -> Q:
    return Q(not_before__isnull=True) | Q(not_before__lte=now)


def _turn(queue: StepQueue, evaluation: Evaluation, taken: dict[int, TakenTurn]) -> int:
    if evaluation.retry:
        return retry_turn(queue.turn)
    if evaluation.step == Step.LEAKAGE:
        return queue.turn
    submission = evaluation.run.submission
    turn = next_turn(queue.turn, taken.get(submission.team_id), submission.pk)
    taken[submission.team_id] = turn
    return turn.turn


def _taken_turns(queue: StepQueue, teams: Iterable[int]) -> dict[int, TakenTurn]:
    rows = TeamTurn.objects.filter(queue=queue, team__in=list(teams))
    return {row.team_id: TakenTurn(row.turn, row.submission) for row in rows}


def _store_taken_turns(queue: StepQueue, taken: dict[int, TakenTurn]) -> None:
    rows = [
        TeamTurn(queue=queue, team_id=team, turn=turn.turn, submission=turn.submission)
        for team, turn in taken.items()
    ]
    TeamTurn.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["queue", "team"],
        update_fields=["turn", "submission"],
    )
