"""Who reviews which proof until when: organizers assign reviewers, and reviewers take proofs."""

from datetime import date

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.deadlines import MAX_TIME, is_in_reach
from docvqa_site.reviews.models import ProofReview, Recusal
from docvqa_site.reviews.selectors import conflict_of_interest, reviewers
from docvqa_site.reviews.services import review_barred_because
from docvqa_site.submissions.models import Submission, SubmissionState

ORGANIZE = "challenge.organize"


def may_organize(user: User) -> bool:
    """Return whether `user` is one of the organizers who assign reviewers."""
    return user.is_staff and user.has_perm(ORGANIZE)


def assigning_barred_because(submission: Submission, user: User) -> str:
    """Return why `user` may not assign reviewers to the submission's proof; empty if they may."""
    if not may_organize(user):
        return "Only organizers can assign reviewers."
    return conflict_of_interest(submission, user)


def organizers_for(submission: Submission) -> list[User]:
    """Return those who may assign reviewers to the submission's proof."""
    staff = User.objects.filter(is_staff=True, is_active=True)
    return [one for one in staff if not assigning_barred_because(submission, one)]


def eligible_reviewers(submission: Submission) -> list[User]:
    """Return those who may review the proof, and have neither decided on it nor declined."""
    decided = {review.reviewer_id for review in submission.reviews.all() if review.is_decided}
    declined = submission.recusals.values("person")
    found = reviewers().filter(is_active=True).exclude(pk__in=decided).exclude(pk__in=declined)
    found = found.order_by("name", "email")
    return [one for one in found if not review_barred_because(submission, one)]


def assign(submission: Submission, reviewer: User, due: date, *, actor: User) -> ProofReview:
    """Ask `reviewer` to decide until `due`; a second time it sets another day. A reviewer may assign themselves.

    Raises:
        PermissionDenied: The actor may not assign reviewers.
        ValidationError: The reviewer may not review it or has decided, or the day is out of reach.
    """
    if actor != reviewer and (rejection := assigning_barred_because(submission, actor)):
        raise PermissionDenied(rejection)
    if rejection := review_barred_because(submission, reviewer):
        # For organizers: the reason would tell about somebody else.
        raise (
            PermissionDenied(rejection) if actor == reviewer else ValidationError("Choose another reviewer.")
        )
    if submission.state != SubmissionState.SUBMITTED:
        raise ValidationError("Only submitted proofs can be reviewed.")
    if not is_in_reach(due):
        raise ValidationError({"due": f"Choose a date within the next {MAX_TIME.days} days."})
    with transaction.atomic():
        review, _ = ProofReview.objects.get_or_create(submission=submission, reviewer=reviewer)
        review = ProofReview.objects.select_for_update().get(pk=review.pk)
        if review.is_decided:
            raise ValidationError("This reviewer has already decided.")
        # Whoever had no time may have found some.
        Recusal.objects.filter(submission=submission, person=reviewer).delete()
        review.assigned_at, review.due = timezone.now(), due
        review.save(update_fields=["assigned_at", "due"])
        record(
            actor,
            "proof_review.assigned",
            review,
            submission=str(submission.pk),
            reviewer=reviewer.pk,
            due=due.isoformat(),
        )
        if actor != reviewer:
            page = settings.SITE_URL + reverse("reviews:desk", args=[submission.pk])
            text = (
                f"Please review the privacy proof of {submission} in {submission.track} by {due:%b %-d, %Y}."
            )
            notify([reviewer], Kind.REVIEWING, f"Proof of {submission}: please review", [text, page])
    return review
