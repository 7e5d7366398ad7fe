"""Which tracks' runs waited for a queue during an outage.

Leakage doesn't count: neither score nor rank waits for it.
"""

from datetime import datetime

from django.db.models import Min, Q

from docvqa_site.evaluation.models import ACTIVE_STATES, Evaluation, StepReport
from docvqa_site.evaluation.queue.places import STEPS
from docvqa_site.liveness import outages
from docvqa_site.liveness.models import Cause
from evaluator.messages.jobs import Step


def waited_since(queue: str, start: datetime) -> dict[str, datetime]:
    """Return the tracks with a run that has needed the queue since `start`, each with when its first one joined."""
    steps = [step for step in STEPS.get(queue, []) if step != Step.LEAKAGE]
    ended = StepReport.objects.filter(step__in=steps, received_at__gte=start).order_by()
    needed = Q(state__in=ACTIVE_STATES, step__in=steps) | Q(pk__in=ended.values("evaluation"))
    found = Evaluation.objects.filter(needed).order_by().values_list("run__submission__track__slug")
    return {track: max(start, joined) for track, joined in found.annotate(Min("created_at"))}


def end_outage(cause: Cause, queue: str, at: datetime) -> None:
    """Record that the outage of this cause in this queue has ended, if one is going on, and whose runs waited."""
    if outage := outages.going_on(cause, queue):
        outages.end(outage, at, waited_since(queue, outage.starts_at))
