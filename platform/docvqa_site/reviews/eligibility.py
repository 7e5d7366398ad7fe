"""Who may decide on a proof, and who may assign its reviewers."""

from collections.abc import Sized

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.models import Recusal
from docvqa_site.reviews.selectors import reviewers
from docvqa_site.submissions.models import Submission

ORGANIZE = "challenge.organize"


def review_barred_because(submission: Submission, user: User, conflicts: Conflicts | None = None) -> str:
    """Return why `user` may not review the submission's proof; empty if they may.

    `conflicts` are theirs, where the request has looked them up already.
    """
    conflicts = conflicts or Conflicts(user)
    if not is_reviewer(user):
        return "Only people with permission to review can review proofs."
    if submission.submitted_at and submission.published_at is None:
        return "The team hasn't published this submission yet; reviews start once it is public."
    recusal = conflicts.recusal(submission)
    if recusal and recusal.why == Recusal.Why.COORDINATION:
        return "You're coordinating this review, so you can't decide on the proof."
    return conflicts.about(submission)


def eligible_reviewers(submission: Submission) -> list[User]:
    """Return those who may review the proof, and have neither decided on it nor declined."""
    decided = {review.reviewer_id for review in submission.reviews.all() if review.is_decided}
    declined = submission.recusals.values("person")
    found = reviewers().filter(is_active=True).exclude(pk__in=decided).exclude(pk__in=declined)
    found = found.order_by("name", "email")
    return [one for one in found if not review_barred_because(submission, one)]


def able_reviewers(submission: Submission, eligible: Sized) -> int:
    """Return how many can decide on the proof: those who are eligible, and those who have decided and may change it."""
    return len(eligible) + sum(review.is_decided for review in submission.reviews.all())


def may_organize(user: User) -> bool:
    """Return whether `user` is one of the organizers who assign reviewers."""
    return user.has_perm(ORGANIZE)


def assigning_barred_because(submission: Submission, user: User, conflicts: Conflicts | None = None) -> str:
    """Return why `user` may not assign reviewers to the submission's proof, likewise."""
    if not may_organize(user):
        return "Only organizers can assign reviewers."
    return (conflicts or Conflicts(user)).about(submission)


def organizers_for(submission: Submission) -> list[User]:
    """Return those who may assign reviewers to the submission's proof."""
    staff = User.objects.filter(is_staff=True, is_active=True)
    return [one for one in staff if not assigning_barred_because(submission, one)]
