"""Changes that organizers request."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Max, QuerySet

from evaluator.api import FINAL_STATES
from evaluator.errors import ErrorCode, ProblemError
from portal.accounts.models import User
from portal.audit.transitions import IllegalTransitionError
from portal.evaluation.models import Evaluation
from portal.evaluation.outcomes import requeue
from portal.submissions.models import Run, RunState
from portal.submissions.selectors import expired_files


def evaluate_again(run: Run, *, actor: User) -> Evaluation:
    """Evaluate a scored, rejected or failed run again.

    Raises `IllegalTransitionError` in any other state, `ProblemError` (`E_ARTIFACT_MISSING`) when a file of the run was
    removed by a rule of retention.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.state not in FINAL_STATES:
            raise IllegalTransitionError(f"Run {run.pk} is {run.state}: its evaluation is not over.")
        if expired := expired_files(run):
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING,
                message="The run can't be evaluated again: a rule of retention has removed its files.",
                found=f"removed: {', '.join(expired)}",
                next_step="Its results stay as they are; the team may submit the method again.",
            )
        return requeue(run, actor=actor)


def failed_since(moment: datetime) -> QuerySet[Run]:
    """Return the runs that have failed through the platform's fault since then and were not queued again."""
    failed = Run.objects.filter(state=RunState.FAILED).annotate(failed_at=Max("evaluations__finished_at"))
    return failed.filter(failed_at__gte=moment).order_by("failed_at")


def requeue_failed(runs: Iterable[Run], *, actor: User) -> list[Run]:
    """Queue again those of the runs that have failed, each with all of its tries, and return them.

    A quota slot that was given back stays with the team: the run is evaluated without one. A submission gets its slot
    back once, so the run gives back nothing if it fails again.
    """
    return [run for run in runs if _requeue_failed(run, actor)]


@transaction.atomic
def _requeue_failed(run: Run, actor: User) -> bool:
    # One transaction for each run, so that no lock is held while another is waited for.
    current = Run.objects.select_for_update().filter(pk=run.pk, state=RunState.FAILED).first()
    if current is None:
        return False
    requeue(current, actor=actor)
    return True
