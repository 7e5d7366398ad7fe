"""Whether a team agrees that its privacy proof is public while the result is verified; `portal.reviews.publication`."""

from django.db import transaction

from portal.accounts.models import User
from portal.audit.models import record
from portal.audit.versions import boards_changed
from portal.submissions.locks import lock_submission
from portal.submissions.models import Submission, SubmissionState


@transaction.atomic
def publish_or_not(submission: Submission, consents: bool, actor: User) -> None:
    """Record whether the team agrees. Raises `ProblemError` (`E_SUBMISSION_STATE`) for a withdrawn submission."""
    current = lock_submission(submission.pk, SubmissionState.DRAFT, SubmissionState.SUBMITTED)
    submission.publishes_proof = consents
    if current.publishes_proof == consents:
        return
    current.publishes_proof = consents
    current.save(update_fields=["publishes_proof"])
    boards_changed(current.track_id)
    record(actor, "submission.proof_published" if consents else "submission.proof_unpublished", current)
