"""Whether a team agrees that its privacy proof is public while it is accepted; `reviews.publication`."""

from django.db import transaction

from docvqa_site.accounts.models import User
from docvqa_site.submissions.locks import lock_submission
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.states import change_listed


@transaction.atomic
def publish_or_not(submission: Submission, consents: bool, actor: User) -> None:
    """Record whether the team agrees. Raises `ProblemError` (`E_SUBMISSION_STATE`) for a withdrawn submission."""
    current = lock_submission(submission.pk, SubmissionState.DRAFT, SubmissionState.SUBMITTED)
    submission.publishes_proof = consents
    if current.publishes_proof == consents:
        return
    action = "submission.proof_published" if consents else "submission.proof_unpublished"
    change_listed(current, actor, action, {"publishes_proof": consents})
