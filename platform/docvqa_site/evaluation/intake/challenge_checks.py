"""The checks on unresolved challenges: made with a run's evaluation, and again when a run of its team leaves the queue.

`team.declared_runs` is made at the accounting of a training record, `team.drawn_indexes` when the bytes of a run were
counted of which rounds were drawn. A flag of the latter withholds the rank, as a flagged log does, until an organizer
accepts the log.

Which challenges count on a run is fixed when its own is drawn (`submissions.unresolved_challenges`); what becomes of
them is not. So the check can only get better after the accounting: a challenge is unresolved until its own run is
accounted.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import Q

from docvqa_site.audit.models import record
from docvqa_site.evaluation.models import StepReport
from docvqa_site.submissions.models import IndexChallenge, Run, RunToken
from docvqa_site.submissions.states import update_results
from docvqa_site.submissions.unresolved_challenges import outcomes_before, unresolved_indexes
from docvqa_site.teams.selectors import teams_sharing_people
from evaluator.messages.jobs import Check, CheckStatus, Outcome, Step
from evaluator.messages.results import RunResults
from evaluator.records.check_table import DECLARED_RUNS, DRAWN_INDEXES


def check_challenges(own: RunToken, tuning_runs: int) -> Check:
    """Return the check of a run with this token, whose record declares so many tuning runs.

    A tuning run needs no challenge, so declaring some excuses unused tokens and no unresolved challenge.
    """
    outcomes = outcomes_before(own)
    unresolved = _number(outcomes.unresolved, "unresolved challenge")
    notes = {"still in evaluation": outcomes.in_evaluation, "from members' other teams": outcomes.elsewhere}
    if stated := ", ".join(f"{number} {note}" for note, number in notes.items() if number):
        unresolved += f" ({stated})"
    accounted = _number(outcomes.accounted, "training run")
    unused = _number(outcomes.unused, "unused token")
    tuning = _number(tuning_runs, "training run")
    found = f"{accounted} accounted for, {unresolved}, {unused}, {tuning} declared as tuning"
    if outcomes.unresolved:
        return DECLARED_RUNS.flagged(
            found, expected="for every earlier challenge of the team, a run whose ε was computed"
        )
    if outcomes.unused > tuning_runs:
        return DECLARED_RUNS.no_power(found)
    return DECLARED_RUNS.passed(found)


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def check_indexes(run: Run) -> Check | None:
    """Return the check of a counted run by its index; None where the site drew no rounds for it."""
    drawn = IndexChallenge.objects.select_related("team").filter(challenge=run.challenge)
    own = drawn.first() if run.challenge else None
    if own is None:
        return None
    submission = run.submission
    unresolved = unresolved_indexes(own, submission.team, submission.track).count()
    found = _number(unresolved, "unresolved challenge")
    is_first = (own.team_id, own.track_id) == (submission.team_id, submission.track_id)
    if unresolved or not is_first:
        return DRAWN_INDEXES.flagged(
            found if is_first else f"{found}, an index that was first drawn for another team",
            expected="an index first drawn for this team, and a counted run for every earlier one",
        )
    return DRAWN_INDEXES.passed(found)


def with_index_check(results: RunResults, check: Check) -> RunResults:
    """Return the results with this check of the run's index, which withholds the rank while it is flagged."""
    others = [one for one in results.checks if one.id != check.id]
    flag = check.id if check.status is CheckStatus.FLAGGED else ""
    return results.model_copy(update={"checks": [*others, check], "log_flag": flag})


def check_again_on_commit(*, team: int, track: int, **_: object) -> None:
    """Make the check again of the team's runs in the track; receives `submissions.signals.challenges_changed`."""

    # Not a `partial`, whose name Django would look for in vain if this failed.
    def again() -> None:
        check_again(team, track)

    # If this is lost, a flag stays until another run leaves the queue; none is missed.
    transaction.on_commit(again, robust=True)


def check_again(team: int, track: int) -> None:
    """Make the check again of the runs in the track on which the team's challenges count: its own, and its people's."""
    teams = teams_sharing_people(team)
    indexes = IndexChallenge.objects.filter(track=track)
    drawn = Q(scored_at__isnull=False, challenge__in=indexes.values("challenge"))
    drawn &= Q(submission__team__in=teams) | Q(
        challenge__in=indexes.filter(team__in=teams).values("challenge")
    )
    accounted = Q(token__team__in=teams)
    for run in list(
        Run.objects.filter(accounted | drawn, submission__track=track).values_list("pk", flat=True)
    ):
        _check_run_again(run)


@transaction.atomic
def _check_run_again(key: UUID) -> None:
    # One transaction for each run, so that no lock is held while another is waited for.
    locked = Run.objects.select_for_update(of=("self",))
    run = locked.select_related("submission__team", "submission__track").get(pk=key)
    token = RunToken.objects.filter(run=run).first()
    check = check_challenges(token, _tuning_runs(run)) if token else check_indexes(run)
    if check is None:
        return
    results = {name: getattr(run, name) for name in ("results", "pending")}
    before = [one for found in results.values() for one in found.checks if one.id == check.id]
    if all(one == check for one in before):
        return
    update_results(run, **{name: _with(found, check) for name, found in results.items()})
    if any(one.status is not check.status for one in before):
        record(None, "run.checked_again", run, check=check.id, status=check.status, found=check.found)


def _tuning_runs(run: Run) -> int:
    """Return how many tuning runs the run's record declares, by its last accounting."""
    reports = StepReport.objects.filter(
        evaluation__run=run, step=Step.ACCOUNTING, outcome=Outcome.PASSED
    ).order_by("-received_at")
    declared = reports.values_list("result__tuning_runs", flat=True).first()
    return declared if isinstance(declared, int) else 0


def _with(results: RunResults, check: Check) -> RunResults:
    """Return the results with this check in the place of the one that was made before."""
    if check.id == DRAWN_INDEXES.id:
        return (
            with_index_check(results, check) if any(one.id == check.id for one in results.checks) else results
        )
    checks = [check if one.id == check.id else one for one in results.checks]
    return results.model_copy(update={"checks": checks})
