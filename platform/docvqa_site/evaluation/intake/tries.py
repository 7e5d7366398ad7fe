"""The check `team.declared_runs`: made at a run's accounting, and again when a run of its team leaves the queue.

Which tries count on a run is fixed when its challenge is drawn (`submissions.tries`); what becomes of them is
not. So the check can only get better after the accounting: a try is lost until its own run is accounted.
"""

from uuid import UUID

from django.db import transaction

from docvqa_site.audit.models import record
from docvqa_site.evaluation.models import StepReport
from docvqa_site.submissions.models import Run, RunToken
from docvqa_site.submissions.states import update_results
from docvqa_site.submissions.tries import tries_before
from evaluator.messages.jobs import Check, Outcome, Step
from evaluator.messages.results import RunResults
from evaluator.records.check_table import DECLARED_RUNS


def check_tries(own: RunToken, tuning_runs: int) -> Check:
    """Return the check of a run with this token, whose record declares so many tuning runs.

    A tuning run needs no challenge, so declaring some excuses unused tokens and no lost try.
    """
    tries = tries_before(own)
    lost = f"{tries.lost} lost {'try' if tries.lost == 1 else 'tries'}"
    if tries.in_evaluation:
        lost += f" ({tries.in_evaluation} still in evaluation)"
    unused = f"{tries.unused} unused {'token' if tries.unused == 1 else 'tokens'}"
    found = f"{tries.accounted} accounted, {lost}, {unused}, {tuning_runs} declared as tuning"
    if tries.lost:
        return DECLARED_RUNS.flagged(
            found, expected="an accounted run for every earlier challenge of the team"
        )
    if tries.unused > tuning_runs:
        return DECLARED_RUNS.no_power(found)
    return DECLARED_RUNS.passed(found)


def check_again_on_commit(*, team: int, track: int, **_: object) -> None:
    """Make the check again of the team's runs in the track; receives `submissions.signals.tries_changed`."""

    # Not a `partial`, whose name Django would look for in vain if this failed.
    def again() -> None:
        check_again(team, track)

    # If this is lost, a flag stays until another run leaves the queue; none is missed.
    transaction.on_commit(again, robust=True)


def check_again(team: int, track: int) -> None:
    """Make the check again of all accounted runs of the team in the track."""
    accounted = RunToken.objects.filter(team=team, track=track, run__isnull=False)
    for run in list(accounted.values_list("run", flat=True)):
        if run is not None:
            _check_run_again(run)


@transaction.atomic
def _check_run_again(key: UUID) -> None:
    # One transaction for each run, so that no lock is held while another is waited for.
    run = Run.objects.select_for_update(of=("self",)).select_related("submission").get(pk=key)
    token = RunToken.objects.filter(run=run).first()
    if token is None:
        return
    check = check_tries(token, _tuning_runs(run))
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
    checks = [check if one.id == check.id else one for one in results.checks]
    return results.model_copy(update={"checks": checks})
