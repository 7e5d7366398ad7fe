"""Evaluations: one attempt at one run, and how each of its steps ended."""

import uuid
from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

from evaluator.contracts import Outcome, Step
from portal.submissions.models import Run

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

STEPS = [(step.value, step.value) for step in Step]
OUTCOMES = [(outcome.value, outcome.value) for outcome in Outcome]


class EvaluationState(models.TextChoices):
    """`lost` means that the worker sent no sign of life for too long; the watchdog then starts the next attempt."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    PASSED = "passed", "passed"
    REJECTED = "rejected", "rejected"
    FAILED = "failed", "failed"
    LOST = "lost", "lost"


ACTIVE_STATES = [EvaluationState.QUEUED, EvaluationState.RUNNING]


class Evaluation(models.Model):
    """One attempt. `step` is the step that is queued or running; `heartbeat_at` is the worker's last sign of life.

    `remaining_s` is the worker's estimate of the seconds left of the step, null where there is none.
    `retry` counts the attempts since the run was last queued by someone, from 0; `attempt` never starts again.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evaluations")
    attempt = models.PositiveSmallIntegerField()
    retry = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=10, choices=EvaluationState.choices, default=EvaluationState.QUEUED)
    step = models.CharField(max_length=20, choices=STEPS)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    remaining_s = models.FloatField(null=True, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    step_queued_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(
        default=timezone.now, help_text="When the step was last sent to the workers."
    )
    overdue_at = models.DateTimeField(
        null=True, blank=True, help_text="When the organizers were notified that no worker takes the step."
    )
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    if TYPE_CHECKING:
        reports: RelatedManager["StepReport"]

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state", "step_queued_at"])]
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt"], name="attempts_are_numbered"),
            models.UniqueConstraint(
                fields=["run"],
                condition=models.Q(state__in=["queued", "running"]),
                name="one_active_evaluation_per_run",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} at {self.run}"


class StepReport(models.Model):
    """How one step ended. `problems` are for the participant, `detail` and `operator_trace` for the organizers only."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="reports")
    step = models.CharField(max_length=20, choices=STEPS)
    outcome = models.CharField(max_length=10, choices=OUTCOMES)
    problems = models.JSONField(default=list)
    result = models.JSONField(null=True, blank=True)
    detail = models.JSONField(null=True, blank=True)
    provenance = models.JSONField(default=dict)
    operator_trace = models.TextField(blank=True)
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["received_at"]
        constraints = [models.UniqueConstraint(fields=["evaluation", "step"], name="one_report_per_step")]

    def __str__(self) -> str:
        return f"{self.step}: {self.outcome}"


class TestSet(models.Model):
    """A test set by the name that tracks give it. The first run that is scored on it fixes its content."""

    name = models.CharField(max_length=64, unique=True)
    sha256 = models.CharField("SHA-256", max_length=64)
    first_scored_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name
