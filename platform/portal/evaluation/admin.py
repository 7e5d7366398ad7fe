"""Evaluations as the organizers see them: with every report and the operator's traces. Nothing is edited."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from evaluator.contracts import GroupScore, ScoringDetail
from evaluator.scoring.metrics import cut
from portal.audit.admin import AuditedAdmin, ReadOnlyAdmin
from portal.audit.transitions import IllegalTransitionError
from portal.evaluation.models import Evaluation, StepReport, TestSet
from portal.evaluation.services import evaluate_again


class StepReportInline(admin.StackedInline[StepReport, Evaluation]):
    """The reports of an evaluation, with what only organizers see."""

    model = StepReport
    fields = readonly_fields = (
        "step",
        "outcome",
        "problems",
        "result",
        "score_groups",
        "provenance",
        "operator_trace",
        "received_at",
    )
    extra = 0
    can_delete = False

    def has_add_permission(self, _request: HttpRequest, _obj: Evaluation | None = None) -> bool:
        return False

    @admin.display(description="Score by groups", empty_value="–")
    def score_groups(self, report: StepReport) -> SafeString | None:
        """Return the scores by groups of questions as a table, which only organizers see."""
        return None if report.detail is None else _as_table(ScoringDetail.model_validate(report.detail))


def _as_table(detail: ScoringDetail) -> SafeString:
    rows = format_html_join(
        "",
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td></tr>",
        (_cells(group) for group in detail.groups),
    )
    return format_html(
        '<table><thead><tr><th scope="col">By</th><th scope="col">Group</th><th scope="col">Questions</th>'
        '<th scope="col">ANLS</th><th scope="col">95 % interval</th><th scope="col">Accuracy</th></tr></thead>'
        "<tbody>{}</tbody></table><p>Pages without image: {}</p>",
        rows,
        f"{detail.pages_without_image:,}",
    )


def _cells(group: GroupScore) -> tuple[str, ...]:
    scores = (group.anls, group.anls_low, group.anls_high, group.accuracy)
    return (group.by, group.group, f"{group.questions:,}", *map(cut, scores))


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin[Evaluation]):
    """The evaluations with their progress, which organizers may run again."""

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
        """Return whether the user may have runs evaluated again."""
        return request.user.has_perm("evaluation.change_evaluation")

    @admin.action(description="Evaluate the runs again", permissions=["evaluate"])
    def evaluate_runs_again(self, request: HttpRequest, queryset: QuerySet[Evaluation]) -> None:
        """Queue the runs of the selected evaluations again."""
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        for run in {evaluation.run for evaluation in queryset.select_related("run__submission")}:
            try:
                evaluate_again(run, actor=request.user)
            except IllegalTransitionError:
                self.message_user(request, f"{run} is {run.state}, not finished.", messages.WARNING)
            else:
                self.message_user(request, f"{run} is queued again.", messages.SUCCESS)


@admin.register(TestSet)
class TestSetAdmin(AuditedAdmin[TestSet]):
    """The test sets that runs were scored on. An entry is deleted to accept another content under its name."""

    list_display = ("name", "sha256", "first_scored_at")

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: TestSet | None = None) -> bool:
        return False
