"""Who doesn't review a proof: whoever has a conflict, no time or not the knowledge, and who coordinates the review."""

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.decision_mails import ADD_REVIEWER, NOBODY_LEFT, mail_readmission, mail_withdrawal
from docvqa_site.reviews.drafts import version_of
from docvqa_site.reviews.eligibility import (
    able_reviewers,
    assigning_barred_because,
    eligible_reviewers,
    organizers_for,
    review_barred_because,
)
from docvqa_site.reviews.history import last_decision
from docvqa_site.reviews.models import Decision, ProofReview, Recusal
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.reviews.services import take_back
from docvqa_site.reviews.verdict import ResultStatus, Verdict, verdict
from docvqa_site.submissions.models import Submission

IN_WORDS = {
    Recusal.Why.CONFLICT: "has a conflict of interest and won't review",
    Recusal.Why.TIME: "doesn't have time to review",
    Recusal.Why.FIELD: "isn't familiar with the field and won't review",
    Recusal.Why.COORDINATION: "is coordinating the review and won't decide on",
}


def recuse(submission: Submission, why: Recusal.Why, text: str = "", *, actor: User) -> Recusal:
    """Record that a reviewer doesn't decide on a proof, free their assignment, and inform the organizers.

    A decision that was made before is taken back in case of a conflict, and otherwise prevents this.

    Raises:
        PermissionDenied: The actor couldn't review it anyway.
        ValidationError: They have decided on this version of the proof.
    """
    if rejection := review_barred_because(submission, actor):
        raise PermissionDenied(rejection)
    with transaction.atomic():
        # In order with decisions.
        submission = Submission.objects.select_for_update().get(pk=submission.pk)
        withdrawn, before = "", verdict_on(submission)
        for review in ProofReview.objects.filter(submission=submission, reviewer=actor):
            if review.is_decided:
                withdrawn = review.get_decision_display()
            if withdrawn and why != Recusal.Why.CONFLICT:
                raise ValidationError("You have already decided on this version of the proof.")
            take_back(review, actor=actor, about=version_of(submission.proof()))
            review.assigned_at = review.due = None
            review.save(update_fields=["assigned_at", "due"])
            if withdrawn:
                mail_withdrawal(review, withdrawn)
        found, _ = Recusal.objects.update_or_create(
            submission=submission, person=actor, defaults={"why": why, "text": text.strip()}
        )
        record(actor, "proof_review.recused", found, submission=str(submission.pk), why=why, text=found.text)
        _mail_organizers(found, before, has_decided=bool(withdrawn))
    return found


def withdrawal_effect(review: ProofReview) -> str:
    """Return what a reviewer who has decided causes by reporting a conflict of interest."""
    submission, others = review.submission, review.submission.reviews.exclude(pk=review.pk)
    found = verdict(
        [(Decision(one.decision), one.reason) for one in others],
        submission.track.reviews_needed,
        revises_rejected=submission.revises_rejected,
    )
    text = (
        f"Your decision, “{review.get_decision_display()}”, will be withdrawn, and the team will be notified."
    )
    now = verdict_on(submission).status
    if now is ResultStatus.VERIFIED and found.status is not now:
        return f"{text} The proof will no longer count as accepted."
    return (
        text if found.status is now else f"{text} The result's status will change to “{found.status.label}”."
    )


def lift_recusal(recusal: Recusal, *, actor: User) -> None:
    """Let a person review a proof again who stepped aside. A decision that was withdrawn isn't restored.

    Raises:
        PermissionDenied: The actor may not assign reviewers.
        ValidationError: The person coordinates the review: they may have read what others decided.
    """
    submission, person = recusal.submission, recusal.person
    if rejection := assigning_barred_because(submission, actor):
        raise PermissionDenied(rejection)
    if not recusal.is_liftable:
        raise ValidationError("A coordinator can read all decisions, so they can't review the proof.")
    with transaction.atomic():
        # The history of the proof follows what is recorded of reviews.
        review = ProofReview.objects.filter(submission=submission, reviewer=person).first()
        record(
            actor,
            "proof_review.recusal_lifted",
            review or recusal,
            submission=str(submission.pk),
            reviewer=person.pk,
        )
        recusal.delete()
        last = last_decision(review) if review else None
        if last and last.readmitted_at:
            mail_readmission(last.review)
        lines = [
            f"{actor} allowed you to review the privacy proof of “{submission}” again.",
            "If you had decided before, please decide again. Your earlier answers and notes are a draft on the desk.",
            settings.SITE_URL + reverse("reviews:desk", args=[submission.pk]),
        ]
        notify([person], Kind.REVIEWING, f"Proof of {submission}: you can review it again", lines)


def _mail_organizers(found: Recusal, before: Verdict, *, has_decided: bool) -> None:
    """Inform the organizers. Some of them may still review the proof, so the decision itself isn't in the mail."""
    # As it is without the decision.
    submission = Submission.objects.get(pk=found.submission_id)
    after = verdict_on(submission)
    reopens = after.is_open and not before.is_open
    eligible, required = eligible_reviewers(submission), submission.track.required_reviews
    able = able_reviewers(submission, eligible)
    if after.is_open and able < required:
        left = NOBODY_LEFT if not eligible else f"{required} reviewers must accept it, but only {able} can."
        todo = f"The proof needs another reviewer. {left} {ADD_REVIEWER}"
    elif reopens:
        todo = "The proof needs another reviewer. Assign one:"
    else:
        todo = "Assign another reviewer if the proof needs one:"
    lines = [
        f"{found.person} {IN_WORDS[Recusal.Why(found.why)]} the privacy proof of “{submission}”.",
        "Their decision has been withdrawn. If you were asked for another reviewer because of it, the date in that "
        "email no longer applies."
        if has_decided
        else "",
        f"The result's status has changed from “{before.status.label}” to “{after.status.label}”."
        if reopens
        else "",
        f"Their note: {found.text}" if found.text else "",
        todo,
        settings.SITE_URL + reverse("reviews:assign", args=[submission.pk]),
    ]
    others = [one for one in organizers_for(submission) if one != found.person]
    notify(others, Kind.REVIEWING, f"Proof of {submission}: a reviewer has withdrawn", filter(None, lines))
