"""Evaluations and their queues as the organizers see them, with every report and the operator's traces.

Nothing is edited; a queue that is paused can be resumed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

from docvqa_site.accounts.selectors import organizer_of
from docvqa_site.audit.admin import AuditedAdmin, ReadOnly, ReadOnlyAdmin, ReadOnlyInline, in_full_of
from docvqa_site.audit.mass_actions import mass_action
from docvqa_site.audit.transitions import IllegalTransitionError
from docvqa_site.evaluation.forms import FailedSinceForm
from docvqa_site.evaluation.models import (
    Evaluation,
    EvaluationState,
    Examination,
    StepQueue,
    StepReport,
    TestSet,
    Worker,
)
from docvqa_site.evaluation.queue import breaker
from docvqa_site.evaluation.queue.places import STEPS
from docvqa_site.evaluation.services import evaluate_again, failed_since, requeue_failed
from docvqa_site.submissions.admin import PrivateAdmin
from docvqa_site.submissions.models import Run
from docvqa_site.submissions.selectors import private_submissions
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ScoringDetail, Step
from evaluator.messages.leakage import LeakageDetail
from evaluator.scoring.metrics import cut

# More are queued all the same.
MOST_SHOWN = 200


class StepReportInline(ReadOnly, admin.StackedInline[StepReport, Evaluation]):
    """The reports of an evaluation, with what only organizers see."""

    model = StepReport
    exclude = ("problems", "result", "detail", "provenance")
    readonly_fields = (in_full_of("problems"), in_full_of("result"), "detail_table", in_full_of("provenance"))
    extra = 0
    can_delete = False

    @admin.display(description="Detail", empty_value="–")
    def detail_table(self, report: StepReport) -> SafeString | None:
        """Return the scores by groups of questions, or what all attacks found, as a table that only organizers see."""
        match report.step, report.detail:
            case _, None:
                return None
            case Step.LEAKAGE, detail:
                return _attacks(LeakageDetail.model_validate(detail))
            case _, detail:
                return _score_groups(ScoringDetail.model_validate(detail))


def _attacks(detail: LeakageDetail) -> SafeString:
    table = _table(
        [
            "Attack",
            "Questions, at least",
            "Members and nonmembers",
            "Figure",
            "Value",
            "95% interval",
            "Above the base weights",
        ],
        [
            (
                measure.attack,
                measure.target_set,
                f"{measure.members:,} + {measure.nonmembers:,}",
                measure.statistic,
                f"{measure.value:.3f}",
                f"{measure.low:.3f} to {measure.high:.3f}",
                f"{measure.above_base_low:.3f} to {measure.above_base_high:.3f}",
            )
            for measure in detail.measures
        ],
    )
    return table + format_html_join("", "<p>Not made, {}.</p>", ((text,) for text in detail.left_out))


def _score_groups(detail: ScoringDetail) -> SafeString:
    table = _table(
        ["By", "Group", "Questions", "ANLS", "95% interval", "Accuracy"],
        [
            (
                f"{group.by}, {group.part} part" if group.part else group.by,
                group.group,
                f"{group.questions:,}",
                cut(group.anls),
                f"{cut(group.anls_low)} to {cut(group.anls_high)}",
                cut(group.accuracy),
            )
            for group in detail.groups
        ],
    )
    return table + format_html("<p>Pages without image: {}</p>", f"{detail.pages_without_image:,}")


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> SafeString:
    head = format_html_join("", '<th scope="col">{}</th>', ((heading,) for heading in headings))
    cells = (format_html_join("", "<td>{}</td>", ((cell,) for cell in row)) for row in rows)
    body = format_html_join("", "<tr>{}</tr>", ((row,) for row in cells))
    return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", head, body)


@admin.register(Evaluation)
class EvaluationAdmin(PrivateAdmin[Evaluation]):
    """The evaluations with their progress, which organizers may run again."""

    to_submission = "run__submission__"
    list_display = (
        "run",
        "attempt",
        "state",
        "step",
        "progress",
        "worker",
        "last_report",
        "created_at",
    )
    list_filter = ("state", "step", "run__submission__track")
    list_select_related = ("run__submission",)
    search_fields = ("run__submission__title", "run__submission__team__name", "worker")
    date_hierarchy = "created_at"
    inlines = (StepReportInline,)
    actions = ("evaluate_runs_again", "queue_failed_runs_again")
    change_list_template = "admin/evaluation/evaluations.html"

    @override
    def get_urls(self) -> list[URLPattern]:
        failed = self.admin_site.admin_view(self.failed_view)
        return [path("failed/", failed, name="evaluation_failed"), *super().get_urls()]

    @admin.display(description="progress", empty_value="–")
    def progress(self, evaluation: Evaluation) -> str | None:
        """Return how much of the step is done."""
        return f"{evaluation.done:,} of {evaluation.total:,}" if evaluation.total else None

    @admin.display(description="last report", ordering="heartbeat_at", empty_value="–")
    def last_report(self, evaluation: Evaluation) -> datetime | None:
        """Return when the worker last reported that it works on the step."""
        return evaluation.heartbeat_at

    def has_evaluate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_evaluation")

    @mass_action(
        "Evaluate the runs again",
        effect="Each run is queued again, takes a worker's time as for a new submission, and its team is notified. "
        "Its result may change, and with it the ranks of its board.",
        permissions=["evaluate"],
    )
    def evaluate_runs_again(self, request: HttpRequest, queryset: QuerySet[Evaluation]) -> None:
        for run in {evaluation.run for evaluation in queryset.select_related("run__submission")}:
            try:
                evaluate_again(run, actor=organizer_of(request))
            except IllegalTransitionError:
                self.message_user(request, f"{run} is {run.state}, not finished.", messages.WARNING)
            except ProblemError as error:
                self.message_user(
                    request, f"{run}: {error.problem.message} {error.problem.found}", messages.WARNING
                )
            else:
                self.message_user(request, f"{run} is queued again.", messages.SUCCESS)

    @mass_action(
        "Queue those of the runs that failed again",
        effect="Each run that failed is queued again with its full number of attempts. The others stay as they are.",
        permissions=["evaluate"],
    )
    def queue_failed_runs_again(self, request: HttpRequest, queryset: QuerySet[Evaluation]) -> None:
        self._queue_failed(request, Run.objects.filter(evaluations__in=queryset).distinct())

    def failed_view(self, request: HttpRequest) -> HttpResponse:
        """Show the runs that have failed since a moment, and queue all of them again."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = FailedSinceForm(request.GET if "since_0" in request.GET else None)
        runs = failed_since(form.cleaned_data["since"]) if form.is_valid() else None
        if runs is not None:
            runs = runs.filter(submission__in=private_submissions(request.user))
        may_queue = self.has_evaluate_permission(request)
        if request.method == "POST" and runs is not None:
            if not may_queue:
                raise PermissionDenied
            self._queue_failed(request, runs)
            return redirect("admin:evaluation_evaluation_changelist")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Failed runs",
            "form": form,
            "runs": None if runs is None else runs.select_related("submission__team")[:MOST_SHOWN],
            "count": 0 if runs is None else runs.count(),
            "may_queue": may_queue,
        }
        return render(request, "admin/evaluation/failed.html", context)

    def _queue_failed(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        queued = requeue_failed(runs, actor=organizer_of(request))
        message = f"{len(queued)} failed run{pluralize(queued)} queued again."
        self.message_user(request, message, messages.SUCCESS if queued else messages.WARNING)


@admin.register(Examination)
class ExaminationAdmin(PrivateAdmin[Examination]):
    """The organizers' examinations of runs, from which trust levels follow."""

    to_submission = "run__submission__"
    list_display = ("run", "level", "state", "by", "requested_at", "finished_at")
    list_filter = ("level", "state", "run__submission__track")
    list_select_related = ("run__submission", "by")
    search_fields = ("run__submission__title", "run__submission__team__name")
    date_hierarchy = "requested_at"
    exclude = ("report",)
    readonly_fields = (in_full_of("report"),)


@admin.register(TestSet)
class TestSetAdmin(AuditedAdmin[TestSet]):
    """The test sets that runs were scored on. An entry is deleted to accept another content under its name."""

    list_display = ("name", "sha256", "private_fraction", "first_scored_at", "revealed_at")

    may_add = False

    def has_change_permission(self, _request: HttpRequest, _obj: TestSet | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: TestSet | None = None) -> bool:
        # Without its entry the results on its private part would be taken for those on all of it.
        is_revealed = obj is not None and obj.revealed_at is not None
        return super().has_delete_permission(request, obj) and not is_revealed


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

    @mass_action(
        "Resume the queues without waiting for a step to pass",
        effect="Workers get steps from them again at once. If the cause persists, the queues pause again.",
        permissions=["resume"],
    )
    def resume(self, request: HttpRequest, queryset: QuerySet[StepQueue]) -> None:
        for queue in queryset:
            if breaker.resume(queue, organizer_of(request)):
                self.message_user(request, f"The queue {queue} is resumed.", messages.SUCCESS)
            else:
                self.message_user(request, f"The queue {queue} is not paused.", messages.WARNING)


def _steps(queue: StepQueue, state: EvaluationState, **conditions: bool) -> int:
    return Evaluation.objects.filter(state=state, step__in=STEPS.get(queue.pk, []), **conditions).count()
