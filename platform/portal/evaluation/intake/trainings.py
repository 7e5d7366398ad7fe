"""All trainings of a team in a track together: the checks C14 and C15, which no single record can answer."""

import math
from dataclasses import dataclass

from django.db.models import QuerySet
from pydantic import TypeAdapter

from evaluator.mechanisms.events import Event, merged
from evaluator.messages.jobs import Check, CheckStatus
from portal.submissions.models import Run, RunState, RunToken
from portal.ui.rounding import rounded_up

# The run's own and 50 before it.
MAX_TRAININGS = 51
EVENTS = TypeAdapter(list[Event])


@dataclass(frozen=True)
class JointPrivacyLoss:
    """ε of all of a team's accounted `trainings` in a track together; None for the `reason`."""

    trainings: int
    epsilon: float | None = None
    reason: str = ""

    def check(self, delta: float) -> Check:
        """Return check C15, which states the joint ε or why there is none."""
        trainings = "1 training" if self.trainings == 1 else f"{self.trainings} trainings"
        if self.epsilon is None:
            return Check(id="C15", status=CheckStatus.FLAGGED, found=f"{trainings}: {self.reason}")
        found = (
            f"ε = {rounded_up(self.epsilon)} at δ = {delta:g} for {trainings} together, by the two-stage rule"
        )
        return Check(id="C15", status=CheckStatus.PASSED, found=found)


def joint_privacy_loss(run: Run, delta: float) -> JointPrivacyLoss:
    """Return the joint ε of the team's trainings in the run's track, the run's own and withdrawn ones included."""
    # Imported here: the accountants take a second to load, and the web process never needs them.
    from evaluator.records.epsilon import MAX_DIFFERENT_ROUNDS, joint_epsilon

    ledger = list(_tokens(run).filter(run__isnull=False).values_list("events", flat=True))
    if len(ledger) > MAX_TRAININGS:
        return JointPrivacyLoss(len(ledger), reason=f"more than {MAX_TRAININGS} are not composed")
    try:
        events = merged(event for events in ledger for event in EVENTS.validate_python(events))
        if len(events) > MAX_DIFFERENT_ROUNDS:
            return JointPrivacyLoss(len(ledger), reason=f"more than {MAX_DIFFERENT_ROUNDS} different rounds")
        epsilon = joint_epsilon(events, delta)
    except ValueError as error:
        return JointPrivacyLoss(len(ledger), reason=str(error))
    if not math.isfinite(epsilon):
        return JointPrivacyLoss(len(ledger), reason="no finite ε holds")
    return JointPrivacyLoss(len(ledger), epsilon)


def check_tokens(run: Run, tuning_runs: int) -> Check:
    """Return check C14: whether each training that the team began, by the tokens issued to it, is accounted for.

    Either it is a run that was submitted, or one of the `tuning_runs` that the run's record declares.
    """
    tokens = _tokens(run)
    issued, used = tokens.count(), tokens.filter(run__isnull=False).count()
    submission = run.submission
    waiting = Run.objects.filter(
        submission__team=submission.team_id,
        submission__track=submission.track_id,
        state__in=[RunState.QUEUED, RunState.RUNNING],
        token__isnull=True,
    ).count()
    return Check(
        id="C14",
        status=CheckStatus.PASSED if issued <= used + waiting + tuning_runs else CheckStatus.FLAGGED,
        expected=f"{issued} run{'s' if issued > 1 else ''}, one for each token that the team was issued",
        found=f"{used} accounted, {waiting} on the way, {tuning_runs} declared as tuning",
    )


def _tokens(run: Run) -> QuerySet[RunToken]:
    return RunToken.objects.filter(team=run.submission.team_id, track=run.submission.track_id)
