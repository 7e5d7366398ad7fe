"""The site's part of the accounting of a run: whose record it is, and the joint ε with the team's other runs."""

from evaluator.errors import Problem, ProblemError
from evaluator.messages.jobs import AccountingResult
from evaluator.messages.results import RunResults
from portal.evaluation.intake.trainings import check_tokens, joint_privacy_loss
from portal.submissions.arrival import reject_foreign_key
from portal.submissions.models import Run, RunToken
from portal.submissions.tokens import claim_token, find_token
from portal.teams.models import Team


def accept_accounting(run: Run, result: AccountingResult) -> RunResults:
    """Claim the record's token for the run, and return its results with the accounting. The caller holds its lock.

    Raises:
        ProblemError: With nothing changed: `E_RECORD_KEY` when no current key of the team signed the record,
            `E_RECORD_TOKEN` when the run may not have the token.
    """
    # Two runs of a team are accepted one after the other, so that the later one counts the earlier one in.
    team = Team.objects.select_for_update(no_key=True).get(pk=run.submission.team_id)
    claim_token(_token(run, team, result), run, result.events)
    joint = joint_privacy_loss(run, result.delta)
    results = run.attempt_results.including(result)
    return results.model_copy(
        update={
            "joint_epsilon": joint.epsilon,
            "joint_runs": joint.trainings,
            "checks": [*results.checks, check_tokens(run, result.tuning_runs), joint.check(result.delta)],
        }
    )


def _token(run: Run, team: Team, result: AccountingResult) -> RunToken:
    """Return the record's token, locked. Raises `ProblemError` with all that is wrong with token and key."""
    problems: list[Problem] = []
    try:
        reject_foreign_key(team, result.public_key)
    except ProblemError as error:
        problems += error.problems
    try:
        token = find_token(run, result.run_token)
    except ProblemError as error:
        problems += error.problems
    if problems:
        raise ProblemError(*problems)
    return token
