"""What the site adds to the accounting of a run: whose record it is, and what it costs with the team's others."""

from typing import Any

from evaluator.accounting.accountant import Accountant
from evaluator.contracts import AccountingResult, TrackRules
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.mechanism import SamplingRule
from portal.evaluation.trainings import check_tokens, joint
from portal.submissions.models import Run, RunToken
from portal.submissions.tokens import find_token, take_token
from portal.teams.models import Team
from portal.teams.selectors import current_keys


def accept(run: Run, result: AccountingResult) -> dict[str, Any]:
    """Let the run hold its record's token; what the accounting then sets on the run, whose lock the caller holds.

    Raises `ProblemError`, with nothing changed: `E_RECORD_KEY` when no current key of the team signed the record,
    `E_RECORD_TOKEN` when the run may not hold the token.
    """
    # Two runs of a team are accepted one after the other, so that the later one counts the earlier one in.
    team = Team.objects.select_for_update(no_key=True).get(pk=run.submission.team_id)
    take_token(_token(run, team, result), run, result.events)
    privacy = TrackRules.model_validate(run.rules).privacy
    assert privacy is not None  # noqa: S101  (no other run is accounted)
    together = joint(run, result.delta)
    checks = [*result.checks, check_tokens(run, result.tuning_runs), together.check(result.delta)]
    return {
        "epsilon": result.epsilon,
        "epsilon_two_stage": _epsilon(result, SamplingRule.TWO_STAGE, Accountant.PLD),
        "epsilon_product": _epsilon(result, SamplingRule.PRODUCT, Accountant.PLD),
        "epsilon_rdp": _epsilon(result, privacy.sampling_rule, Accountant.RDP),
        "accountant": result.accountant,
        "joint_epsilon": together.epsilon,
        "joint_runs": together.trainings,
        "checks": [*run.checks, *(check.model_dump(mode="json") for check in checks)],
    }


def _token(run: Run, team: Team, result: AccountingResult) -> RunToken:
    """The record's token, locked. Raises `ProblemError` with all that is wrong with token and key."""
    problems = []
    if not current_keys(team).filter(public_key=result.public_key).exists():
        problems += ProblemError.of(
            ErrorCode.RECORD_KEY,
            where="public_key",
            expected="a key that your team has registered and not revoked",
            found=result.public_key,
        ).problems
    try:
        token = find_token(run, result.run_token)
    except ProblemError as error:
        problems += error.problems
    if problems:
        raise ProblemError(*problems)
    return token


def _epsilon(result: AccountingResult, rule: SamplingRule, accountant: Accountant) -> float | None:
    return next(
        (row.epsilon for row in result.epsilons if (row.sampling_rule, row.accountant) == (rule, accountant)),
        None,
    )
