"""How far the evaluation of a run is, as its team sees it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import prefetch_related_objects

from evaluator.contracts import Outcome, Step, TrackRules
from evaluator.errors import ErrorCode, Problem
from evaluator.worker.time_left import in_words
from portal.submissions import results
from portal.submissions.changed_tensors import ChangedTensors
from portal.submissions.models import Run, RunState

FINAL_STATES = [RunState.SCORED, RunState.REJECTED, RunState.FAILED]
STEP_NAMES = {
    Step.VALIDATE: "Validation",
    Step.COMMUNICATION: "Communication",
    Step.ACCOUNTING: "Privacy accounting",
    Step.SCORING: "Scoring",
}


@dataclass(frozen=True)
class StepStatus:
    """One step of the current attempt: waiting, queued, running, passed, rejected or failed."""

    step: Step
    state: str
    result: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return STEP_NAMES[self.step]

    @property
    def finished_at(self) -> datetime | None:
        moment = self.provenance.get("finished_at")
        return datetime.fromisoformat(moment) if moment else None


@dataclass(frozen=True)
class RunStatus:
    """A run and its newest attempt.

    Attributes:
        attempt: From 1; 0 as long as none was started.
        remaining_s: The worker's estimate of the seconds left of the step, None where there is none.
        queue_position: Place in the queue of its step, from 1; None unless it waits there.
    """

    run: Run
    attempt: int
    steps: list[StepStatus]
    step: Step | None = None
    done: int = 0
    total: int = 0
    remaining_s: float | None = None
    queue_position: int | None = None
    heartbeat_at: datetime | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_final(self) -> bool:
        return self.run.state in FINAL_STATES

    @property
    def step_name(self) -> str:
        return STEP_NAMES[self.step] if self.step else ""

    @property
    def time_left(self) -> str:
        return in_words(self.remaining_s)

    @property
    def runs_before(self) -> int:
        return (self.queue_position or 1) - 1

    @property
    def epsilons(self) -> list[results.EpsilonRow]:
        return results.epsilon_rows(self.run)

    @property
    def margin(self) -> float | None:
        return results.margin(self.run)

    @property
    def trust_meaning(self) -> str:
        return results.TRUST[self.run.trust] if self.run.trust is not None else ""

    @property
    def checks(self) -> list[results.ShownCheck]:
        return results.shown_checks(self.run)

    @property
    def tally(self) -> str:
        return results.tally(self.run)

    @property
    def changed_tensors(self) -> ChangedTensors | None:
        """None until the checkpoint was validated."""
        results_of = {status.step: status.result for status in self.steps}
        return ChangedTensors.of(results_of.get(Step.VALIDATE, {}))

    @property
    def finished_steps(self) -> list[StepStatus]:
        """The steps that a worker has reported on."""
        return [status for status in self.steps if status.provenance]


def statuses(runs: Iterable[Run]) -> list[RunStatus]:
    """The status of every run, in the given order."""
    runs = list(runs)
    prefetch_related_objects(runs, "evaluations__reports")
    return [_status(run) for run in runs]


def _status(run: Run) -> RunStatus:
    if run.state == RunState.DRAFT:
        return RunStatus(run=run, attempt=0, steps=[])
    steps = TrackRules.model_validate(run.rules).steps()
    evaluation = max(run.evaluations.all(), key=lambda attempt: attempt.attempt, default=None)
    if evaluation is None:
        return RunStatus(run=run, attempt=0, steps=[StepStatus(step, "waiting") for step in steps])
    reports = {report.step: report for report in evaluation.reports.all()}
    is_active = evaluation.state in ("queued", "running")
    current = Step(evaluation.step)

    def of(step: Step) -> StepStatus:
        if report := reports.get(step):
            return StepStatus(step, report.outcome, report.result or {}, report.provenance)
        if step is current:
            return StepStatus(step, evaluation.state if is_active else Outcome.FAILED)
        return StepStatus(step, "waiting")

    problems = [Problem.model_validate(problem) for report in reports.values() for problem in report.problems]
    if run.state == RunState.FAILED and not problems:
        problems = [Problem.of(ErrorCode.PLATFORM_FAULT)]
    return RunStatus(
        run=run,
        attempt=evaluation.attempt,
        steps=[of(step) for step in steps],
        step=current if is_active else None,
        done=evaluation.done if is_active else 0,
        total=evaluation.total if is_active else 0,
        remaining_s=evaluation.remaining_s if is_active else None,
        queue_position=_place(current, evaluation.step_queued_at) if evaluation.state == "queued" else None,
        heartbeat_at=evaluation.heartbeat_at,
        problems=problems,
    )


def _place(step: Step, since: datetime) -> int:
    """Place, from 1, in the queue of `step`: scoring waits for a GPU, all other steps share the CPU workers."""
    shared = (
        [Step.SCORING] if step is Step.SCORING else [other for other in Step if other is not Step.SCORING]
    )
    before = Run.objects.filter(
        evaluations__state="queued", evaluations__step__in=shared, evaluations__step_queued_at__lt=since
    )
    return before.count() + 1
