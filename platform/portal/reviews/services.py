"""Decisions on proofs."""

from collections.abc import Mapping

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.selectors import is_reviewer
from portal.audit.models import record
from portal.audit.versions import boards_changed
from portal.evaluation.notifications import mail_people, mail_team
from portal.reviews.checklist import CHECKLIST, Answer
from portal.reviews.models import Decision, ProofReview
from portal.reviews.selectors import conflict_of_interest, verdict_on
from portal.submissions.models import Artifact, Submission, SubmissionState


def may_review(submission: Submission, user: User) -> str:
    """Return why `user` may not review the submission's proof; empty if they may."""
    if not is_reviewer(user):
        return "Proofs are reviewed by organizers with the permission to do so."
    if submission.submitted_at and submission.published_at is None:
        return "Its team hasn't published it; reviews begin then."
    return conflict_of_interest(submission, user)


def decide(
    submission: Submission, decision: Decision, reason: str, checklist: Mapping[str, str], *, actor: User
) -> ProofReview:
    """Record `actor`'s decision on the submission's proof, in place of an earlier one of theirs.

    Args:
        reason: Needed for a rejection, and to change an earlier decision. Public when it is a rejection.
        checklist: Answers by item; all of them are needed to accept.

    Raises:
        PermissionDenied: The actor isn't a reviewer, or has a conflict of interest.
        ValidationError: By field, what is missing.
    """
    if rejection := may_review(submission, actor):
        raise PermissionDenied(rejection)
    with transaction.atomic():
        # The submission's lock puts decisions in order, so that each mail reports the verdict after its decision.
        submission = Submission.objects.select_for_update().get(pk=submission.pk)
        review = ProofReview.objects.filter(submission=submission, reviewer=actor).first()
        before = review.decision if review else Decision.PENDING
        reason = reason.strip()
        _require_complete(submission, decision, reason, checklist, is_new=before == Decision.PENDING)
        review = review or ProofReview(submission=submission, reviewer=actor)
        review.decision, review.reason, review.checklist = decision, reason, dict(checklist)
        review.decided_at = timezone.now()
        review.save()
        boards_changed(submission.track_id)
        record(
            actor,
            f"proof_review.{decision}",
            review,
            submission=str(submission.pk),
            before=before,
            reason=reason,
            checklist=dict(checklist),
        )
        _notify_team(review)
    return review


def reopen(*, artifact: Artifact, actor: User, **_: object) -> None:
    """Take every decision on a proof back, since it was revised; receives `submissions.signals.proof_revised`.

    What was decided and why stays in the audit record, and a reviewer finds their answers to the checklist.
    """
    submission = artifact.submission
    decided = list(submission.reviews.exclude(decision=Decision.PENDING).select_related("reviewer"))
    for review in decided:
        before, reason = review.decision, review.reason
        review.decision, review.reason, review.decided_at = Decision.PENDING, "", None
        review.save(update_fields=["decision", "reason", "decided_at"])
        record(
            actor,
            "proof_review.reopened",
            review,
            submission=str(submission.pk),
            before=before,
            reason=reason,
            version=artifact.version,
        )
    boards_changed(submission.track_id)
    page = settings.SITE_URL + reverse("admin:reviews_review", args=[submission.pk])
    text = f"Version {artifact.version} of the privacy proof of {submission} was uploaded. Please decide on it again."
    mail_people(
        [review.reviewer for review in decided if review.reviewer.is_active],
        f"Proof of {submission}: revised",
        [text, page],
    )


def _require_complete(
    submission: Submission, decision: Decision, reason: str, checklist: Mapping[str, str], *, is_new: bool
) -> None:
    if submission.state != SubmissionState.SUBMITTED:
        raise ValidationError(f"This submission is {submission.state}; only submitted ones are reviewed.")
    if decision not in {Decision.ACCEPTED, Decision.REJECTED}:
        raise ValidationError({"decision": "Accept or reject."})
    if not reason and (decision == Decision.REJECTED or not is_new):
        raise ValidationError(
            {"reason": "Give the reason: the team needs to know what to fix or what changed."}
        )
    keys = {item.key for item in CHECKLIST}
    if not (set(checklist) <= keys and set(checklist.values()) <= set(Answer)):
        raise ValidationError("An answer doesn't belong to the checklist.")
    if decision == Decision.ACCEPTED and (missing := sorted(keys - set(checklist))):
        raise ValidationError(dict.fromkeys(missing, "An answer is needed to accept the proof."))


def _notify_team(review: ProofReview) -> None:
    submission = review.submission
    verdict = verdict_on(submission)
    lines = [
        f"A reviewer {review.decision} the privacy proof of {submission}.",
        review.reason,
        f"The result is now {verdict.status}: {verdict.reason}.",
        settings.SITE_URL + submission.get_absolute_url(),
    ]
    mail_team(submission.team, f"Proof of {submission}: {review.decision}", filter(None, lines))
