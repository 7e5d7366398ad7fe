"""The queues and their workers as the organizers see them; a queue that is paused can be resumed."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Case, Count, Q, QuerySet, Value, When
from django.http import HttpRequest
from typing_extensions import override

from evaluator.messages.jobs import Step
from portal.audit.admin import ReadOnlyAdmin
from portal.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState, StepQueue, Worker
from portal.evaluation.queue import breaker
from portal.evaluation.queue.places import QUEUES


class WorkerInline(admin.TabularInline[Worker, StepQueue]):
    """The workers that were seen in the last day."""

    model = Worker
    fields = readonly_fields = ("name", "seen_at", "sick_at", "reason")
    extra = 0
    can_delete = False

    @override
    def has_add_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False


@admin.register(StepQueue)
class StepQueueAdmin(ReadOnlyAdmin[StepQueue]):
    """What waits, what was sent, and whether the queue is paused, and why."""

    list_display = ("name", "waiting", "sent", "running", "paused_at", "probe_at", "reason", "unattended_at")
    inlines = (WorkerInline,)
    actions = ("resume",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[StepQueue]:
        counts = _counts()
        queues = super().get_queryset(request)
        return queues.annotate(
            **{
                f"steps_{kind}": Case(
                    *(When(pk=name, then=Value(counts[name][kind])) for name in counts), default=Value(0)
                )
                for kind in ("waiting", "sent", "running")
            }
        )

    @admin.display
    def waiting(self, queue: StepQueue) -> int:
        """Return how many steps wait in the database."""
        return _annotated(queue, "waiting")

    @admin.display
    def sent(self, queue: StepQueue) -> int:
        """Return how many steps are in the broker."""
        return _annotated(queue, "sent")

    @admin.display
    def running(self, queue: StepQueue) -> int:
        """Return how many steps run."""
        return _annotated(queue, "running")

    def has_resume_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may resume a queue."""
        return request.user.has_perm("evaluation.change_evaluation")

    @admin.action(description="Resume the queues without waiting for a step to pass", permissions=["resume"])
    def resume(self, request: HttpRequest, queryset: QuerySet[StepQueue]) -> None:
        """Resume the selected queues that are paused."""
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        for queue in queryset:
            if breaker.resume(queue, request.user):
                self.message_user(request, f"The queue {queue} is resumed.", messages.SUCCESS)
            else:
                self.message_user(request, f"The queue {queue} is not paused.", messages.WARNING)


def _annotated(queue: StepQueue, kind: str) -> int:
    count: int = getattr(queue, f"steps_{kind}")
    return count


def _counts() -> dict[str, dict[str, int]]:
    """Return how many steps of each queue wait, were sent, and run, in one query."""
    is_queued = Q(state=EvaluationState.QUEUED)
    kinds = {
        "waiting": is_queued & Q(sent_at__isnull=True),
        "sent": is_queued & Q(sent_at__isnull=False),
        "running": Q(state=EvaluationState.RUNNING),
    }
    counts = {name: dict.fromkeys(kinds, 0) for name in QUEUES.values()}
    active = Evaluation.objects.filter(state__in=ACTIVE_STATES).order_by().values("step")
    annotated = active.annotate(**{kind: Count("pk", filter=condition) for kind, condition in kinds.items()})
    for step, *numbers in annotated.values_list("step", *kinds):
        for kind, number in zip(kinds, numbers, strict=True):
            counts[QUEUES[Step(step)]][kind] += number
    return counts
