"""Changes that organizers request."""

from django.db import transaction

from evaluator.api import FINAL_STATES
from portal.accounts.models import User
from portal.audit.transitions import IllegalTransitionError
from portal.evaluation.models import Evaluation
from portal.evaluation.outcomes import requeue
from portal.submissions.models import Run


def evaluate_again(run: Run, *, actor: User) -> Evaluation:
    """Evaluate a scored, rejected or failed run again. Raises `IllegalTransitionError` in any other state."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run.pk)
        if run.state not in FINAL_STATES:
            raise IllegalTransitionError(f"Run {run.pk} is {run.state}: its evaluation is not over.")
        return requeue(run, actor=actor)
