"""Changes that people ask for."""

from django.db import transaction

from portal.accounts.models import User
from portal.evaluation.endings import start_over
from portal.evaluation.models import Evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.states import IllegalTransitionError

FINISHED_STATES = [RunState.SCORED, RunState.REJECTED, RunState.FAILED]


def evaluate_again(run: Run, *, actor: User) -> Evaluation:
    """Evaluate a scored, rejected or failed run again. Raises IllegalTransitionError in any other state."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.state not in FINISHED_STATES:
            raise IllegalTransitionError(f"Run {run.pk} is {run.state}: its evaluation is not over.")
        return start_over(run, actor=actor)
