"""The progress of a run's evaluation, as its team sees it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import prefetch_related_objects

from docvqa_site.challenge.rankings import Shortfall
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.display import results
from docvqa_site.evaluation.display.changed_tensors import ChangedTensors
from docvqa_site.evaluation.display.epsilon_inputs import EpsilonInputs
from docvqa_site.evaluation.examining.levels import MEANINGS
from docvqa_site.evaluation.examining.trust import in_order
from docvqa_site.evaluation.models import (
    ACTIVE_STATES,
    Evaluation,
    EvaluationState,
    Examination,
    StepQueue,
    StepReport,
)
from docvqa_site.evaluation.queue import places
from docvqa_site.submissions.models import Run, RunState
from evaluator.accounting.accountant import Accountant
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import Epsilon, Outcome, Step, TrackRules
from evaluator.messages.states import FINAL_STATES
from evaluator.worker.time_left import in_words

STEP_NAMES = {
    Step.VALIDATE: "Validation",
    Step.COMMUNICATION: "Communication",
    Step.ACCOUNTING: "Privacy accounting",
    Step.SCORING: "Scoring",
    Step.LEAKAGE: "Leakage",
}


@dataclass(frozen=True)
class StepStatus:
    """One step of the current attempt: waiting, queued, running, passed, rejected, failed or not run."""

    step: Step
    state: str
    result: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return STEP_NAMES[self.step]

    @property
    def finished_at(self) -> datetime | None:
        """When the step was finished; None before."""
        moment = self.provenance.get("finished_at")
        return datetime.fromisoformat(moment) if moment else None


@dataclass(frozen=True)
class RunStatus:
    """A run and its newest attempt.

    Attributes:
        attempt: From 1; 0 as long as none was started.
        remaining_s: The worker's estimate of the seconds left of the step, None where there is none.
        queue_position: Position in the queue of its step, from 1; None unless it waits there.
        next_attempt_at: When the next attempt may begin after a platform fault; None if it may begin now.
        is_paused: Whether the queue in which it waits is paused because of a platform fault.
        evidence: The steps of the attempt that the results come from, which may be an earlier one.
    """

    run: Run
    attempt: int
    steps: list[StepStatus]
    step: Step | None = None
    done: int = 0
    total: int = 0
    remaining_s: float | None = None
    queue_position: int | None = None
    next_attempt_at: datetime | None = None
    is_paused: bool = False
    heartbeat_at: datetime | None = None
    problems: list[Problem] = field(default_factory=list)
    evidence: list[StepStatus] = field(default_factory=list)

    @property
    def is_final(self) -> bool:
        return self.run.state in FINAL_STATES

    @property
    def is_measuring(self) -> bool:
        """Whether the leakage of the scored run is being measured, or is going to be."""
        attempts = self.run.evaluations.all()
        return any(one.step == Step.LEAKAGE and one.state in ACTIVE_STATES for one in attempts)

    @property
    def has_evidence(self) -> bool:
        """Whether there is something to show of how the run was evaluated."""
        return self.run.scored_at is not None or bool(self.finished_steps)

    @property
    def step_name(self) -> str:
        """The current step's name on pages; empty where there is none."""
        return STEP_NAMES[self.step] if self.step else ""

    @property
    def time_left(self) -> str:
        """The estimate of the time left, in words; empty where there is none."""
        return in_words(self.remaining_s)

    @property
    def runs_before(self) -> int:
        """The number of runs that are queued before this one."""
        return (self.queue_position or 1) - 1

    @property
    def epsilons(self) -> list[Epsilon]:
        return results.epsilon_rows(self.run.results)

    @property
    def rules_agree(self) -> bool:
        """Whether ε is the same under both sampling rules."""
        found = {row.sampling_rule: row.epsilon for row in self.epsilons if row.accountant is Accountant.PLD}
        return len(found) > 1 and None not in found.values() and len(set(found.values())) == 1

    @property
    def shortfall(self) -> Shortfall | None:
        """What keeps the scored run from a rank; None if nothing does, and before it is scored."""
        return None if self.run.scored_at is None else results.shortfall(self.run)

    @property
    def trust_meaning(self) -> str:
        """What the run's trust level means; empty before it has one."""
        level = self.run.results.trust_level
        return "" if level is None else MEANINGS[level]

    @property
    def examinations(self) -> list[Examination]:
        """The run's examinations that ended with a report, newest first, for the team and the organizers."""
        return in_order(self.run.examinations.all())[::-1]

    @property
    def passed_examinations(self) -> list[Examination]:
        """Those that have passed, for everyone."""
        return [one for one in self.examinations if one.passed]

    @property
    def checks(self) -> list[results.ShownCheck]:
        return results.shown_checks(self.run)

    @property
    def tally(self) -> str:
        return results.tally(self.run.results.checks)

    @property
    def changed_tensors(self) -> ChangedTensors | None:
        """The tensors that training changed; None before the validation."""
        results_of = {status.step: status.result for status in self.evidence}
        return ChangedTensors.of(results_of.get(Step.VALIDATE, {}))

    @property
    def epsilon_inputs(self) -> EpsilonInputs | None:
        """The inputs of the recomputed ε, for those who may read the training record; None before the accounting."""
        accounting = next((step.result for step in self.evidence if step.step is Step.ACCOUNTING), {})
        return EpsilonInputs.of(accounting, self.run.budget)

    @property
    def finished_steps(self) -> list[StepStatus]:
        """The steps that a worker has reported on."""
        return [status for status in self.evidence if status.provenance]


def statuses(runs: Iterable[Run]) -> list[RunStatus]:
    """Return the status of every run, in the given order, by a number of queries that doesn't grow with the runs."""
    runs = list(runs)
    prefetch_related_objects(runs, "evaluations__reports", "examinations__by")
    attempts = [_newest_attempt(run) for run in runs]
    queued = [attempt for attempt in attempts if attempt and attempt.state == EvaluationState.QUEUED]
    now = clock.now() if queued else None
    found = places.places(queued, now) if now else {}
    paused = _paused_queues() if queued else set()
    return [
        _status(run, attempt, _Waiting(now, found, paused))
        for run, attempt in zip(runs, attempts, strict=True)
    ]


@dataclass(frozen=True)
class _Waiting:
    """What is known of the queues: their places, by evaluation, and which of them are paused."""

    now: datetime | None
    places: dict[UUID, int]
    paused: set[str]


def _newest_attempt(run: Run) -> Evaluation | None:
    return max(_attempts(run), key=lambda attempt: attempt.attempt, default=None)


def _attempts(run: Run) -> list[Evaluation]:
    """Return the attempts at the run's score; what is measured afterwards is no news to its team."""
    return [attempt for attempt in run.evaluations.all() if attempt.step != Step.LEAKAGE]


def _paused_queues() -> set[str]:
    return set(StepQueue.objects.filter(paused_at__isnull=False).values_list("pk", flat=True))


def _status(run: Run, evaluation: Evaluation | None, waiting: _Waiting) -> RunStatus:
    if run.state == RunState.DRAFT:
        return RunStatus(run=run, attempt=0, steps=[])
    steps = TrackRules.model_validate(run.rules).steps()
    if evaluation is None:
        return RunStatus(run=run, attempt=0, steps=[StepStatus(step, "waiting") for step in steps])
    shown = _steps_of(evaluation, steps)
    return RunStatus(
        run=run,
        attempt=evaluation.attempt,
        steps=shown,
        evidence=_earlier_steps(run, steps) if run.is_evaluated_again else shown,
        heartbeat_at=evaluation.heartbeat_at,
        problems=_problems(run, evaluation.reports.all()),
        **(_progress(evaluation, waiting) if evaluation.state in ACTIVE_STATES else {}),
    )


def _earlier_steps(run: Run, steps: Iterable[Step]) -> list[StepStatus]:
    """Return the steps of the attempt that has scored the run last."""
    passed = [attempt for attempt in _attempts(run) if attempt.state == EvaluationState.PASSED]
    attempt = max(passed, key=lambda attempt: attempt.attempt, default=None)
    if attempt is None:
        return []
    return _steps_of(attempt, steps)


def _steps_of(attempt: Evaluation, steps: Iterable[Step]) -> list[StepStatus]:
    reports = {Step(report.step): report for report in attempt.reports.all()}
    return [_step_status(step, attempt, reports.get(step)) for step in steps]


def _progress(evaluation: Evaluation, waiting: _Waiting) -> dict[str, Any]:
    """Return the fields of a `RunStatus` about the step of an active attempt."""
    fields = {name: getattr(evaluation, name) for name in ("done", "total", "remaining_s")}
    fields["step"] = Step(evaluation.step)
    if evaluation.state != EvaluationState.QUEUED:
        return fields
    begins_at = evaluation.not_before
    is_later = begins_at is not None and waiting.now is not None and begins_at > waiting.now
    return {
        **fields,
        "queue_position": waiting.places.get(evaluation.pk),
        "next_attempt_at": begins_at if is_later else None,
        "is_paused": places.QUEUES[Step(evaluation.step)] in waiting.paused,
    }


def _step_status(step: Step, evaluation: Evaluation, report: StepReport | None) -> StepStatus:
    if report is not None:
        # After a rejection it had nothing to add: what it needs was rejected.
        is_without_finding = report.outcome == Outcome.REJECTED and not report.problems
        state = "not run" if is_without_finding else report.outcome
        return StepStatus(step, state, report.result or {}, report.provenance)
    if step != evaluation.step:
        return StepStatus(step, "not run" if evaluation.state == EvaluationState.REJECTED else "waiting")
    return StepStatus(step, evaluation.state if evaluation.state in ACTIVE_STATES else Outcome.FAILED)


def _problems(run: Run, reports: Iterable[StepReport]) -> list[Problem]:
    problems = [Problem.model_validate(problem) for report in reports for problem in report.problems]
    if run.state == RunState.FAILED and not problems:
        return [Problem.of(ErrorCode.PLATFORM_FAULT)]
    return problems
