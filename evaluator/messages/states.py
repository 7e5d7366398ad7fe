"""The states of submissions, runs and results, and the one word that people read for each of them.

People read the `label`; the database and the API have the value. The two differ in `LABELS` only. A run is *scored*
when it has its results, whatever becomes of its proof. *Evaluation* is the process, never a state. *Verification*
is what examinations show of the training (`TrustLevel`), never the outcome of a review.
"""

from collections.abc import Mapping
from enum import StrEnum


class SubmissionState(StrEnum):
    DRAFT = "draft"
    SUBMITTED = "submitted"
    WITHDRAWN = "withdrawn"


class RunState(StrEnum):
    """The state of a run: a participant must fix a `rejected` one, a `failed` one is the platform's fault."""

    DRAFT = "draft"
    QUEUED = "queued"
    RUNNING = "running"
    SCORED = "scored"
    REJECTED = "rejected"
    FAILED = "failed"


FINAL_STATES = frozenset({RunState.SCORED, RunState.REJECTED, RunState.FAILED})


class ResultStatus(StrEnum):
    """How far a result can be relied on; `scored` where the track requires no proof."""

    SCORED = "scored"
    PROVISIONAL = "provisional"
    VERIFIED = "verified"
    REJECTED = "rejected"

    @property
    def label(self) -> str:
        """The status in the words of pages and email."""
        return LABELS.get(self, self.value)


LABELS: Mapping[ResultStatus, str] = {
    ResultStatus.PROVISIONAL: "under review",
    ResultStatus.VERIFIED: "proof accepted",
    ResultStatus.REJECTED: "proof rejected",
}
