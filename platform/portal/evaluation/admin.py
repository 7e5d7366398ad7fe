"""Evaluations as the organizers see them: with every report and the operator's traces. Nothing is edited."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.audit.admin import ReadOnlyAdmin
from portal.evaluation.models import Evaluation, StepReport
from portal.evaluation.services import evaluate_again
from portal.submissions.states import IllegalTransitionError


class StepReportInline(admin.TabularInline):  # type: ignore[type-arg]  # not subscriptable when it runs
    model = StepReport
    fields = readonly_fields = (
        *("step", "outcome", "problems", "result", "provenance", "operator_trace", "received_at"),
    )
    extra = 0
    can_delete = False

    def has_add_permission(self, _request: HttpRequest, _obj: Evaluation | None = None) -> bool:
        return False


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    list_display = (
        "run",
        "attempt",
        "state",
        "step",
        "done",
        "total",
        "worker",
        "heartbeat_at",
        "created_at",
    )
    list_filter = ("state", "step", "run__submission__track")
    list_select_related = ("run__submission",)
    search_fields = ("run__submission__title", "run__submission__team__name", "worker")
    date_hierarchy = "created_at"
    inlines = (StepReportInline,)
    actions = ("evaluate_runs_again",)

    def has_evaluate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_evaluation")

    @admin.action(description="Evaluate the runs again", permissions=["evaluate"])
    def evaluate_runs_again(self, request: HttpRequest, queryset: QuerySet[Evaluation]) -> None:
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        for run in {evaluation.run for evaluation in queryset.select_related("run__submission")}:
            try:
                evaluate_again(run, actor=request.user)
            except IllegalTransitionError:
                self.message_user(request, f"{run} is {run.state}, not finished.", messages.WARNING)
            else:
                self.message_user(request, f"{run} is queued again.", messages.SUCCESS)
