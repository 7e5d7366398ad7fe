"""Whether a team agrees that its privacy proof is public while the result is verified; `portal.reviews.publication`."""

from django.db import transaction

from evaluator.errors import ErrorCode, ProblemError
from portal.accounts.models import User
from portal.audit.models import record
from portal.audit.versions import boards_changed
from portal.submissions.models import Submission, SubmissionState


@transaction.atomic
def publish_or_not(submission: Submission, consents: bool, actor: User) -> None:
    """Record whether the team agrees. Raises `ProblemError` (`E_SUBMISSION_STATE`) for a withdrawn submission."""
    current = Submission.objects.select_for_update().get(pk=submission.pk)
    if current.state == SubmissionState.WITHDRAWN:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            expected="a draft or a submitted submission",
            found=f"one that is {current.state}",
        )
    submission.publishes_proof = consents
    if current.publishes_proof == consents:
        return
    current.publishes_proof = consents
    current.save(update_fields=["publishes_proof"])
    boards_changed(current.track_id)
    record(actor, "submission.proof_published" if consents else "submission.proof_unpublished", current)
