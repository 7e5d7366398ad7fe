"""How often a page asks for the progress of an evaluation, and whether there is anything new since it last did."""

import hashlib
import time

from docvqa_site.evaluation.models import ACTIVE_STATES, EvaluationState
from docvqa_site.submissions.models import Submission

RUNNING_POLL_S = 2
# The place in the queue changes when another run is finished, which takes minutes.
QUEUED_POLL_S = 10
# The place in the queue and the age of the last heartbeat are refreshed at least this often.
REFRESH_S = 20


def poll_s(states: set[str]) -> int:
    """Return the seconds between two requests of a page whose evaluations are in these states."""
    return RUNNING_POLL_S if EvaluationState.RUNNING in states else QUEUED_POLL_S


def progress_version(submission: Submission) -> str:
    """Return a value that changes with what the status shows of evaluations in progress, in one small query."""
    rows = submission.runs.order_by("pk", "evaluations__attempt").values_list(
        "state",
        "evaluations__attempt",
        "evaluations__state",
        "evaluations__step",
        "evaluations__done",
        "evaluations__remaining_s",
    )
    is_active = any(state in ACTIVE_STATES for _, _, state, *_ in rows)
    parts = (submission.state, list(rows), int(time.time()) // REFRESH_S if is_active else 0)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
