"""Who doesn't review a proof: whoever has a conflict, no time or not the knowledge, and who coordinates the review."""

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.assignments import organizers_for
from docvqa_site.reviews.models import ProofReview, Recusal
from docvqa_site.reviews.services import review_barred_because, take_back
from docvqa_site.submissions.models import Submission

IN_WORDS = {
    Recusal.Why.CONFLICT: "has a conflict of interest",
    Recusal.Why.TIME: "doesn't have the time",
    Recusal.Why.FIELD: "isn't familiar with the field",
    Recusal.Why.COORDINATION: "coordinates the review",
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
        for review in ProofReview.objects.filter(submission=submission, reviewer=actor):
            if review.is_decided and why != Recusal.Why.CONFLICT:
                raise ValidationError("You have already decided on this version of the proof.")
            take_back(review, actor=actor)
            review.assigned_at = review.due = None
            review.save(update_fields=["assigned_at", "due"])
        found, _ = Recusal.objects.update_or_create(
            submission=submission, person=actor, defaults={"why": why, "text": text.strip()}
        )
        record(actor, "proof_review.recused", found, submission=str(submission.pk), why=why, text=found.text)
        _mail_organizers(found)
    return found


def _mail_organizers(found: Recusal) -> None:
    submission = found.submission
    lines = [
        f"{found.person} {IN_WORDS[Recusal.Why(found.why)]} and won't decide on the privacy proof of {submission}.",
        found.text,
        "Assign another reviewer if the proof needs one:",
        settings.SITE_URL + reverse("reviews:assign", args=[submission.pk]),
    ]
    others = [one for one in organizers_for(submission) if one != found.person]
    notify(others, Kind.REVIEWING, f"Proof of {submission}: a reviewer has withdrawn", filter(None, lines))
