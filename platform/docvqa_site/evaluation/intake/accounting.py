"""The site's part of the accounting of a run: whose record it is, and all trainings of its team in the track together.

No single record can answer the checks `team.declared_runs` (`intake.challenge_checks`) and `team.joint_epsilon`.
"""

import math
from dataclasses import dataclass

from django.db.models import Q
from pydantic import TypeAdapter

from docvqa_site.evaluation.intake.challenge_checks import check_challenges
from docvqa_site.submissions.arrival import reject_foreign_key
from docvqa_site.submissions.models import Run, RunToken
from docvqa_site.submissions.tokens import find_token
from docvqa_site.submissions.unresolved_challenges import counted_with
from docvqa_site.teams.models import Team
from docvqa_site.ui.rounding import power_of_ten, rounded_up
from evaluator.errors import Problem, ProblemError
from evaluator.mechanisms.events import Event, merged
from evaluator.messages.jobs import AccountingResult, Check
from evaluator.records.check_table import JOINT_EPSILON

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
        """Return the check that states the joint ε or why there is none."""
        trainings = "1 training run" if self.trainings == 1 else f"{self.trainings} training runs"
        if self.epsilon is None:
            return JOINT_EPSILON.flagged(f"{trainings}: {self.reason}")
        return JOINT_EPSILON.passed(
            f"ε = {rounded_up(self.epsilon)} at δ = {power_of_ten(delta)} for {trainings} up to and including this "
            "one, under the two-stage rule"
        )


@dataclass(frozen=True)
class TeamAccounting:
    """What the site knows of the team of an accounted run, as of the moment in which the run takes its `token`."""

    token: RunToken
    challenges: Check
    joint: JointPrivacyLoss


def look_up_team(run: Run, result: AccountingResult) -> TeamAccounting | list[Problem]:
    """Return what the team's accounting adds to the run's, or all that is wrong with the record's token and key.

    Locks team and token: of two runs of a team, the one that comes later counts the other one in. The caller holds the
    run's lock.
    """
    team = Team.objects.select_for_update(no_key=True).get(pk=run.submission.team_id)
    problems: list[Problem] = []
    try:
        reject_foreign_key(team, result.public_key)
    except ProblemError as error:
        problems += error.problems
    try:
        token = find_token(run, result.run_token)
    except ProblemError as error:
        return problems + error.problems
    if problems:
        return problems
    return TeamAccounting(
        token, check_challenges(token, result.tuning_runs), _joint_privacy_loss(token, result)
    )


def _joint_privacy_loss(own: RunToken, result: AccountingResult) -> JointPrivacyLoss:
    """Return the joint ε of the team's trainings in the track: this one, withdrawn ones, those that were for practice,
    and those of other teams that count with them.
    """
    # Imported here: the accountants take a second to load, and the web process never needs them.
    from evaluator.records.epsilon import MAX_DIFFERENT_ROUNDS, joint_epsilon

    accounted = counted_with(own).filter(~Q(events=[]) | Q(pk=own.pk))
    ledger = [
        result.events if pk == own.pk else events for pk, events in accounted.values_list("pk", "events")
    ]
    if len(ledger) > MAX_TRAININGS:
        return JointPrivacyLoss(len(ledger), reason=f"the site composes at most {MAX_TRAININGS}")
    try:
        events = merged(event for events in ledger for event in EVENTS.validate_python(events))
        if len(events) > MAX_DIFFERENT_ROUNDS:
            return JointPrivacyLoss(len(ledger), reason=f"more than {MAX_DIFFERENT_ROUNDS} different rounds")
        epsilon = joint_epsilon(events, result.delta)
    except ValueError as error:
        return JointPrivacyLoss(len(ledger), reason=str(error))
    if not math.isfinite(epsilon):
        return JointPrivacyLoss(len(ledger), reason="ε is not finite")
    return JointPrivacyLoss(len(ledger), epsilon)
