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
from docvqa_site.reviews.eligibility import (
    assigning_barred_because,
    organizers_for,
    review_barred_because,
)
from docvqa_site.reviews.models import ProofReview, Recusal
from docvqa_site.reviews.selectors import is_settled
from docvqa_site.submissions.models import Submission, SubmissionState


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
    if actor != reviewer and is_settled(submission):
        raise ValidationError("The review is complete: the proof needs no other reviewer.")
    if not is_in_reach(due):
        raise ValidationError({"due": f"Choose a date within the next {MAX_TIME.days} days."})
    with transaction.atomic():
        review, _ = ProofReview.objects.get_or_create(submission=submission, reviewer=reviewer)
        review = ProofReview.objects.select_for_update().get(pk=review.pk)
        if review.is_decided:
            raise ValidationError("This reviewer has already decided.")
        before = review.due
        # Whoever had no time may have found some.
        declined, _ = Recusal.objects.filter(submission=submission, person=reviewer).delete()
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
        if actor != reviewer and before:
            _mail_new_date(review, before, actor)
        elif actor != reviewer:
            lines = [
                f"{actor} asks you to review the privacy proof of “{submission}” (team: {submission.team}, track: "
                f"{submission.track}). Please decide by {due:%b %-d, %Y}.",
                "If you have a conflict of interest or no time, choose “I can't review this proof” on the review page.",
                f"How to review a proof: {settings.SITE_URL}{reverse('docs:document', args=['roles/reviewer/'])}",
                settings.SITE_URL + reverse("reviews:desk", args=[submission.pk]),
            ]
            notify([reviewer], Kind.REVIEWING, f"Proof of {submission}: please review", lines)
        elif declined:
            _mail_return(submission, reviewer, due)
    return review


def _mail_new_date(review: ProofReview, before: date, actor: User) -> None:
    submission, due = review.submission, review.due
    text = (
        f"{actor} has changed the date by which you are asked to decide on the privacy proof of “{submission}” "
        f"from {before:%b %-d, %Y} to {due:%b %-d, %Y}."
    )
    page = settings.SITE_URL + reverse("reviews:desk", args=[submission.pk])
    notify([review.reviewer], Kind.REVIEWING, f"Proof of {submission}: new due date", [text, page])


def _mail_return(submission: Submission, reviewer: User, due: date) -> None:
    """Inform the organizers, who were asked to find another reviewer."""
    text = (
        f"{reviewer}, who had declined the review of the privacy proof of “{submission}”, has taken it after all, "
        f"until {due:%b %-d, %Y}."
    )
    page = settings.SITE_URL + reverse("reviews:assign", args=[submission.pk])
    others = [one for one in organizers_for(submission) if one != reviewer]
    notify(others, Kind.REVIEWING, f"Proof of {submission}: a reviewer has returned", [text, page])


def unassign(review: ProofReview, *, actor: User) -> None:
    """End an assignment. The reviewer may still decide.

    Raises:
        PermissionDenied: The actor may not assign reviewers.
        ValidationError: The reviewer has decided.
    """
    submission, reviewer = review.submission, review.reviewer
    if rejection := assigning_barred_because(submission, actor):
        raise PermissionDenied(rejection)
    with transaction.atomic():
        review = ProofReview.objects.select_for_update().get(pk=review.pk)
        if review.is_decided:
            raise ValidationError("This reviewer has already decided.")
        review.assigned_at = review.due = None
        review.save(update_fields=["assigned_at", "due"])
        details = {"submission": str(submission.pk), "reviewer": reviewer.pk}
        record(actor, "proof_review.unassigned", review, **details)
        if actor != reviewer:
            text = f"You no longer need to review the privacy proof of “{submission}”: {actor} ended your assignment."
            notify([reviewer], Kind.REVIEWING, f"Proof of {submission}: assignment ended", [text])
