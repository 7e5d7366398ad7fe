"""Evaluations, one attempt at one run, with how each of its steps ended; and examinations of scored runs."""

import math
import uuid
from datetime import datetime
from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property
from typing_extensions import override

from docvqa_site.evaluation.queue.turns import FIRST_TURN
from docvqa_site.submissions.models import Run
from docvqa_site.teams.models import Team
from evaluator.messages.examinations import Report
from evaluator.messages.jobs import Outcome, Step, TrustLevel

STEPS = [(step.value, step.value) for step in Step]
# The first level is the evaluation's, and needs no examination.
LEVELS = [(level.value, level.label) for level in TrustLevel if level is not TrustLevel.RECOMPUTED]
OUTCOMES = [(outcome.value, outcome.value) for outcome in Outcome]


class EvaluationState(models.TextChoices):
    """`lost` means that the worker sent no heartbeat for too long; the watchdog then starts the next attempt."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    PASSED = "passed", "passed"
    REJECTED = "rejected", "rejected"
    FAILED = "failed", "failed"
    LOST = "lost", "lost"
    CANCELED = "canceled", "canceled"


ACTIVE_STATES = [EvaluationState.QUEUED, EvaluationState.RUNNING]


class Evaluation(models.Model):
    """One attempt. `step` is the step that is queued or running; `heartbeat_at` is the last heartbeat's time.

    A queued step waits in the database, in the order of `turn` and `ticket`, until it is sent to the broker; both are
    null until the dispatcher has seen it. All moments are by the database's clock. `remaining_s` is the worker's
    estimate of the seconds left of the step, null where there is none. `retry` counts the attempts since the run was
    last queued by someone, from 0; `attempt` never starts again. Of the attempts before this one, `faults` count as
    the platform's fault, and `losses` ended with their worker.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evaluations")
    attempt = models.PositiveSmallIntegerField()
    retry = models.PositiveSmallIntegerField(default=0)
    faults = models.PositiveSmallIntegerField(default=0)
    losses = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=10, choices=EvaluationState.choices, default=EvaluationState.QUEUED)
    step = models.CharField(max_length=20, choices=STEPS)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    remaining_s = models.FloatField(null=True, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    step_queued_at = models.DateTimeField(default=timezone.now)
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="When the attempt may begin, after a platform fault."
    )
    turn = models.PositiveIntegerField(null=True, blank=True)
    ticket = models.PositiveBigIntegerField(null=True, blank=True)
    sent_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the step was sent to the broker; empty while it waits in the queue.",
    )
    renewals = models.PositiveSmallIntegerField(
        default=0, help_text="How often the step was sent again because its files' addresses had expired."
    )
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["state", "step_queued_at"]),
            models.Index(
                fields=["step", "turn", "ticket"],
                condition=models.Q(state="queued"),
                name="waiting_steps_in_order",
            ),
        ]
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
        indexes = [models.Index(fields=["received_at"])]
        constraints = [models.UniqueConstraint(fields=["evaluation", "step"], name="one_report_per_step")]

    def __str__(self) -> str:
        return f"{self.step}: {self.outcome}"


class ExaminationState(models.TextChoices):
    """`passed` and `failed` have a report. A `broken` one could not be completed, through no fault of the run."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    PASSED = "passed", "passed"
    FAILED = "failed", "not passed"
    BROKEN = "broken", "broken"
    CANCELED = "canceled", "canceled"


ACTIVE_EXAMINATIONS = [ExaminationState.QUEUED, ExaminationState.RUNNING]


class Examination(models.Model):
    """An examination of a scored run, from its request to its end; not changed any more once it has ended.

    `examining.trust` derives the run's trust level from its rows. `progress`, `reason` and `machine`
    are for the organizers only. `finished_at` and `heartbeat_at` are by the database's clock.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="examinations")
    level = models.PositiveSmallIntegerField(
        choices=LEVELS, help_text="The level that the run gets if it passes."
    )
    state = models.CharField(max_length=10, choices=ExaminationState.choices, default=ExaminationState.QUEUED)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
        help_text="The organizer; empty if nobody was named.",
    )
    requested_at = models.DateTimeField(default=timezone.now)
    machine = models.CharField(max_length=200, blank=True, help_text="The machine that runs the examination.")
    heartbeat_at = models.DateTimeField(null=True, blank=True, help_text="The machine's last heartbeat.")
    progress = models.CharField(max_length=200, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    report = models.JSONField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="Why the examination is broken.")

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(level__in=[level for level, _ in LEVELS]),
                name="examinations_are_of_known_levels",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    state__in=["passed", "failed"], report__isnull=False, finished_at__isnull=False
                )
                | (~models.Q(state__in=["passed", "failed"]) & models.Q(report__isnull=True)),
                name="examinations_that_ended_with_a_verdict_have_a_report",
            ),
            models.UniqueConstraint(
                fields=["run"],
                condition=models.Q(state__in=["queued", "running"]),
                name="one_active_examination_per_run",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.trust_level.label} of {self.run}: {self.get_state_display()}"

    @override
    def save(self, *args: Any, **kwargs: Any) -> None:
        stored = (
            type(self).objects.filter(pk=self.pk) if not self._state.adding else type(self).objects.none()
        )
        if stored.exclude(state__in=ACTIVE_EXAMINATIONS).exists():
            raise TypeError("An examination that has ended is never changed.")
        super().save(*args, **kwargs)

    @override
    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("An examination is deleted with its run only.")

    @property
    def trust_level(self) -> TrustLevel:
        return TrustLevel(self.level)

    @property
    def passed(self) -> bool:
        return self.state == ExaminationState.PASSED

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_EXAMINATIONS

    @property
    def examiner(self) -> str:
        return self.by.name if self.by else "the organizers"

    @property
    def ended_at(self) -> datetime:
        assert self.finished_at is not None  # noqa: S101  (a database constraint)
        return self.finished_at

    @cached_property
    def found(self) -> Report:
        return Report.model_validate(self.report)


class StoredSample(models.Model):
    """The weight sample of a run, which `evaluation.intake.near_copies` compares with those of other runs."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="weight_sample", primary_key=True)
    key_id = models.CharField(max_length=16)
    per_tensor = models.PositiveSmallIntegerField()
    changes = models.BinaryField()

    def __str__(self) -> str:
        return f"weight sample of {self.run}"


class StoredMeans(models.Model):
    """The means of a run over draws of providers, by which comparisons alone read it: nothing publishes them.

    `parts` has those from each part of the test set, as the worker reported them (`DrawnMeans`).
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="drawn_means", primary_key=True)
    parts = models.JSONField(default=list)

    class Meta:
        verbose_name_plural = "stored means"

    def __str__(self) -> str:
        return f"means over draws of {self.run}"


class NearCopy(models.Model):
    """Two runs of a track with nearly the same weights, of which `run` was submitted later. For organizers only."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="near_copies")
    # Without a constraint in the database, whose check would wait for the lock of another run.
    other = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    agreement = models.FloatField(help_text="The share of sampled changes on which the two runs agree.")
    cosine = models.FloatField(help_text="Of the sampled changes.")
    found_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        ordering = ["-found_at", "-pk"]
        verbose_name_plural = "near copies"
        constraints = [models.UniqueConstraint(fields=["run", "other"], name="one_row_for_two_runs")]

    def __str__(self) -> str:
        return f"{self.run} and {self.other}"

    @property
    def agreement_percent(self) -> str:
        """The agreement in percent, rounded down: only all of it is 100."""
        return f"{math.floor(1000 * self.agreement) / 10:g}"


class StepQueue(models.Model):
    """The steps that wait for the same workers, named as their broker queue. Whoever sends steps holds the row's lock.

    While a queue is paused, its steps are sent one at a time, not before `probe_at`, until one passes.
    """

    name = models.CharField(max_length=40, primary_key=True)
    turn = models.PositiveIntegerField(default=FIRST_TURN, help_text="The turn of the last step sent.")
    ticket = models.PositiveBigIntegerField(default=0, help_text="The last ticket given out.")
    paused_at = models.DateTimeField(null=True, blank=True)
    probe_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="Why the queue is paused.")
    unattended_at = models.DateTimeField(
        null=True, blank=True, help_text="When the organizers were notified that no worker takes its steps."
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class TeamTurn(models.Model):
    """The last turn that a team has taken in a queue; see `docvqa_site.evaluation.queue.turns`."""

    queue = models.ForeignKey(StepQueue, on_delete=models.CASCADE, related_name="team_turns")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    turn = models.PositiveIntegerField()
    # No foreign key: its check would wait for a lock on the submission, and sending must wait for nobody.
    submission = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "team"], name="one_last_turn_of_a_team")]

    def __str__(self) -> str:
        return f"turn {self.turn} of {self.team}"


class Worker(models.Model):
    """A worker that sent a heartbeat while it ran a step of this queue; `reason` is why it is sick, if it is."""

    queue = models.ForeignKey(StepQueue, on_delete=models.CASCADE, related_name="workers")
    name = models.CharField(max_length=200)
    seen_at = models.DateTimeField()
    sick_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["-seen_at"]
        constraints = [models.UniqueConstraint(fields=["queue", "name"], name="one_row_for_a_worker")]

    def __str__(self) -> str:
        return self.name


class Inventory(models.Model):
    """What a worker last reported that it has: base weights, test and leakage sets, each a name with its SHA-256."""

    worker = models.CharField(max_length=200, unique=True)
    references = models.JSONField(default=dict)
    test_sets = models.JSONField(default=dict)
    leakage_sets = models.JSONField(default=dict)
    unenforced = models.JSONField(default=list, help_text="What its kernel doesn't enforce on steps.")
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["worker"]
        verbose_name_plural = "inventories"

    def __str__(self) -> str:
        return self.worker


class Watch(models.Model):
    """The one row of the watchdog: when it last looked, and since when it has looked without a long pause."""

    watched_at = models.DateTimeField()
    since = models.DateTimeField()

    class Meta:
        verbose_name_plural = "watch"

    def __str__(self) -> str:
        return f"watching since {self.since:%Y-%m-%d %H:%M:%S}"


class ScoredPart(models.TextChoices):
    """The part of its test set on which a track's results are."""

    ALL = "all", "the whole test set"
    PUBLIC = "public", "its public part"
    PRIVATE = "private", "its private part"


class TestSet(models.Model):
    """A test set by the name that tracks give it. The first run that is scored on it fixes its content and its split.

    Where it is split, results are those on its public part until the organizers reveal the private one, which they do
    once, for all tracks that use it; see `docvqa_site.evaluation.test_sets.parts`.
    """

    name = models.CharField(max_length=64, unique=True)
    sha256 = models.CharField("SHA-256", max_length=64)
    split_sha256 = models.CharField(
        "SHA-256 of its split", max_length=64, blank=True, help_text="Empty if the test set isn't split."
    )
    private_fraction = models.FloatField(
        null=True, blank=True, help_text="The approximate share of private questions."
    )
    first_scored_at = models.DateTimeField(default=timezone.now)
    revealed_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the private part was revealed; since then, results are based on it.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(revealed_at__isnull=True) | ~models.Q(split_sha256=""),
                name="only_a_split_test_set_is_revealed",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def part(self) -> ScoredPart:
        if not self.split_sha256:
            return ScoredPart.ALL
        return ScoredPart.PRIVATE if self.revealed_at else ScoredPart.PUBLIC

    @property
    def private_percent(self) -> int:
        """About how much of its questions is private."""
        return round(100 * (self.private_fraction or 0))

    @property
    def public_percent(self) -> int:
        return 100 - self.private_percent
