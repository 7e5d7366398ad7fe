"""The queues and their workers as the organizers see them; a queue that is paused can be resumed."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.audit.admin import ReadOnlyAdmin, ReadOnlyInline
from portal.evaluation.models import Evaluation, EvaluationState, StepQueue, Worker
from portal.evaluation.queue import breaker
from portal.evaluation.queue.places import STEPS


class WorkerInline(ReadOnlyInline[Worker, StepQueue]):
    """The workers that were seen in the last day."""

    model = Worker


@admin.register(StepQueue)
class StepQueueAdmin(ReadOnlyAdmin[StepQueue]):
    """What waits, what was sent, and whether the queue is paused, and why."""

    list_display = ("name", "waiting", "sent", "running", "paused_at", "probe_at", "reason", "unattended_at")
    inlines = (WorkerInline,)
    actions = ("resume",)

    @admin.display
    def waiting(self, queue: StepQueue) -> int:
        """Return how many steps wait in the database."""
        return _steps(queue, EvaluationState.QUEUED, sent_at__isnull=True)

    @admin.display
    def sent(self, queue: StepQueue) -> int:
        """Return how many steps are in the broker."""
        return _steps(queue, EvaluationState.QUEUED, sent_at__isnull=False)

    @admin.display
    def running(self, queue: StepQueue) -> int:
        return _steps(queue, EvaluationState.RUNNING)

    def has_resume_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_evaluation")

    @admin.action(description="Resume the queues without waiting for a step to pass", permissions=["resume"])
    def resume(self, request: HttpRequest, queryset: QuerySet[StepQueue]) -> None:
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        for queue in queryset:
            if breaker.resume(queue, request.user):
                self.message_user(request, f"The queue {queue} is resumed.", messages.SUCCESS)
            else:
                self.message_user(request, f"The queue {queue} is not paused.", messages.WARNING)


def _steps(queue: StepQueue, state: EvaluationState, **conditions: bool) -> int:
    return Evaluation.objects.filter(state=state, step__in=STEPS.get(queue.pk, []), **conditions).count()
