"""Decisions on proofs."""

from collections.abc import Mapping
from datetime import date, datetime
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from pydantic import ValidationError as MalformedError

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.deadlines import MAX_TIME, SECOND_OPINION_TIME, default_due, is_in_reach
from docvqa_site.reviews.decision_mails import mail_decision, mail_standing_rejection
from docvqa_site.reviews.drafts import Draft, draft_of, note_name, stored_draft, version_of
from docvqa_site.reviews.eligibility import review_barred_because
from docvqa_site.reviews.models import LONE_REJECTION, Decision, ProofReview
from docvqa_site.submissions.judged import proof_withholds
from docvqa_site.submissions.models import Artifact, Submission, SubmissionState


class ProofRevisedError(ValidationError):
    """The team has sent a newer version of the proof than the one that was read."""


def decide(
    submission: Submission,
    decision: Decision,
    reason: str,
    checklist: Mapping[str, str],
    *,
    actor: User,
    notes: Mapping[str, str] | None = None,
    changes_due: date | None = None,
    change_reason: str = "",
    declares_no_conflict: bool,
    confirms_contradiction: bool = False,
    version: int | None = None,
) -> ProofReview:
    """Record `actor`'s decision on the submission's proof, in place of an earlier one of theirs.

    Args:
        reason: Needed unless every answer of an acceptance is yes or n/a. Public when it is a rejection.
        checklist: Answers by item; all of them are needed to accept.
        notes: By item, for the team; needed where the answer is no.
        changes_due: By when the team must revise the proof, if changes are requested.
        change_reason: For the team; needed where the actor has decided before.
        declares_no_conflict: The reviewer's own word, beside what the history says; needed for every decision.
        confirms_contradiction: The reviewer's word that they mean it, where it contradicts their answers.
        version: Of the proof, as the actor read it; None for whichever is the newest.

    Raises:
        PermissionDenied: The actor isn't a reviewer, or has a conflict of interest.
        ValidationError: By field, what is missing; or the team has uploaded a newer version of the proof, or the actor
            has declined the review.
    """
    conflicts = Conflicts(actor)
    if rejection := review_barred_because(submission, actor, conflicts):
        raise PermissionDenied(rejection)
    if conflicts.recusal(submission):
        raise ValidationError("You declined this review. To decide after all, take it on the desk first.")
    given = _draft(
        answers=checklist,
        notes=notes or {},
        reason=reason,
        change_reason=change_reason,
        changes_due=changes_due if decision == Decision.CHANGES_REQUESTED else None,
        declares_no_conflict=declares_no_conflict,
    )
    with transaction.atomic():
        # The submission's lock puts decisions in order, so that each mail reports the verdict after its decision.
        # A draft that is saved for the first time refers to the submission, and must not wait for this lock.
        submission = Submission.objects.select_for_update(no_key=True).get(pk=submission.pk)
        newest = _newest_version(submission, version)
        # A draft may be saved for the first time at this very moment.
        review, _ = ProofReview.objects.get_or_create(submission=submission, reviewer=actor)
        before = review.decision
        contradiction = "" if confirms_contradiction else given.contradicts(decision)
        _require_complete(submission, decision, given, contradiction, is_new=before == Decision.PENDING)
        _decide(review, decision, given)
        boards_changed(submission.track_id)
        record(
            actor,
            f"proof_review.{decision}",
            review,
            submission=str(submission.pk),
            before=before,
            version=newest,
            **given.texts(),
            checklist=review.checklist,
        )
        mail_decision(review, given, Decision(before))
    return review


def _draft(*, answers: Mapping[str, str], notes: Mapping[str, str], **written: object) -> Draft:
    if not set(answers) | set(notes) <= {item.key for item in CHECKLIST}:
        raise ValidationError("An answer doesn't match the checklist.")
    try:
        return Draft.model_validate({"answers": answers, "notes": notes, **written})
    except MalformedError as error:
        raise ValidationError("An answer doesn't match the checklist, or a text is too long.") from error


def _decide(review: ProofReview, decision: Decision, given: Draft) -> None:
    review.decision, review.reason = decision, given.reason
    review.checklist, review.notes = {**given.answers}, {**given.notes}
    review.changes_due = given.changes_due
    review.declares_no_conflict, review.draft = given.declares_no_conflict, None
    review.decided_at = timezone.now()
    review.save()


def save_draft(
    submission: Submission,
    draft: Draft,
    *,
    actor: User,
    decided_at: str | None = None,
    version: int | None = None,
    drafted_at: str | None = None,
) -> ProofReview:
    """Keep what the reviewer has written so far, which nobody else sees. A decision that was made stays as it is.

    Args:
        decided_at: When the actor had decided, in ISO format, as the page showed it that the draft was written on;
            empty if they hadn't, and None if the page doesn't say.
        version: Of the proof, as the actor read it; None for whichever is the newest.
        drafted_at: When the draft was saved, in ISO format, that the page showed when it was opened; empty if there was
            none, and None if the page doesn't say.

    Raises:
        PermissionDenied: The actor isn't a reviewer, or has a conflict of interest.
        ValidationError: Since the page was opened, the actor has decided, or written on another page or about a newer
            version.
    """
    if rejection := review_barred_because(submission, actor):
        raise PermissionDenied(rejection)
    with transaction.atomic():
        # No audit entry: nothing has changed for anybody else.
        review, _ = ProofReview.objects.get_or_create(submission=submission, reviewer=actor)
        # A decision that is recorded at this moment comes first or removes the draft.
        review = ProofReview.objects.select_for_update().get(pk=review.pk)
        if decided_at is not None and review.decided_at and review.decided_at.isoformat() != decided_at:
            raise ValidationError("You have recorded a decision since you opened this page. Reload it.")
        newest = version_of(submission.proof())
        read = newest if version is None else min(version, newest)
        if stored_draft(review, newest).version > read:
            raise ProofRevisedError(
                "You have reviewed a newer version since you opened this page. Reload it."
            )
        if (
            drafted_at is not None
            and review.draft is not None
            and not (review.draft.get("window") == draft.window or saved_at(review) == drafted_at)
        ):
            raise ValidationError(
                "You have edited this review in another window since you opened this one. Copy what you wrote here, "
                "then reload the page."
            )
        kept = draft.model_copy(update={"version": read, "earlier": draft_of(review, read).earlier})
        review.draft, review.drafted_at = kept.model_dump(mode="json"), timezone.now()
        review.save(update_fields=["draft", "drafted_at"])
    return review


def saved_at(review: ProofReview | None) -> str:
    """Return when the reviewer's draft was saved, in ISO format; empty if there is none."""
    return review.drafted_at.isoformat() if review and review.draft is not None and review.drafted_at else ""


def let_rejections_stand(now: datetime | None = None) -> int:
    """Withhold the ranks of proofs that one reviewer rejected and nobody else has judged in time; return how many."""
    decided_before = (now or timezone.now()) - SECOND_OPINION_TIME
    alone = Submission.objects.filter(
        **LONE_REJECTION, rejection_stands=False, state=SubmissionState.SUBMITTED
    )
    overdue = alone.filter(reviews__decision=Decision.REJECTED, reviews__decided_at__lte=decided_before)
    return sum(map(_let_stand, overdue.values_list("pk", flat=True)))


@transaction.atomic
def _let_stand(submission: UUID) -> bool:
    current = Submission.objects.select_for_update().get(pk=submission)
    counts = {name: getattr(current, name) for name in LONE_REJECTION}
    if counts != LONE_REJECTION or current.rejection_stands:
        # Somebody was faster.
        return False
    current.rejection_stands = True
    current.save(update_fields=["rejection_stands"])
    boards_changed(current.track_id)
    review = current.reviews.get(decision=Decision.REJECTED)
    record(None, "proof_review.rejection_stands", review, submission=str(submission))
    mail_standing_rejection(current)
    return True


def reopen(*, artifact: Artifact, actor: User, **_: object) -> None:
    """Take every decision on a proof back, since it was revised; receives `submissions.signals.proof_revised`.

    What was decided and why stays in the audit record, and a reviewer finds what they wrote as a draft.
    """
    submission = artifact.submission
    # Before the decisions are taken back. What withheld the rank does so until a reviewer accepts the revision.
    withholds = Submission.objects.filter(proof_withholds(), pk=submission.pk).exists()
    Submission.objects.filter(pk=submission.pk).update(revises_rejected=withholds)
    decided = list(submission.reviews.exclude(decision=Decision.PENDING).select_related("reviewer"))
    for review in decided:
        take_back(review, actor=actor, about=artifact.version - 1, version=artifact.version)
    page = settings.SITE_URL + reverse("reviews:desk", args=[submission.pk])
    text = f"Version {artifact.version} of the privacy proof of “{submission}” is ready for another review."
    note = f"The team's summary of changes: {artifact.note}" if artifact.note else ""
    notify(
        [review.reviewer for review in decided if review.reviewer.is_active],
        Kind.REVIEWING,
        f"Proof of {submission}: revised",
        filter(None, [text, note, page]),
    )


def take_back(review: ProofReview, *, actor: User, about: int, **details: int) -> None:
    """Undo a decision, if there is one; what was written stays as the reviewer's draft. The audit record keeps it.

    Args:
        about: The version of the proof that the decision is about.
    """
    if not review.is_decided:
        return
    before, reason = review.decision, review.reason
    # They read the new version with what they found in the old one.
    review.draft = draft_of(review, about).model_dump(mode="json")
    review.decision, review.reason, review.decided_at = Decision.PENDING, "", None
    review.checklist, review.notes, review.changes_due, review.declares_no_conflict = {}, {}, None, False
    if review.due:
        # The day was for the version before.
        review.due = default_due()
    review.save()
    boards_changed(review.submission.track_id)
    record(
        actor,
        "proof_review.reopened",
        review,
        submission=str(review.submission_id),
        before=before,
        reason=reason,
        **details,
    )


def _require_complete(
    submission: Submission, decision: Decision, given: Draft, contradiction: str, *, is_new: bool
) -> None:
    if submission.state != SubmissionState.SUBMITTED:
        raise ValidationError(f"This submission is {submission.state}; only submitted ones can be reviewed.")
    if decision == Decision.PENDING:
        raise ValidationError("Accept, request changes or reject.")
    missing: dict[str, str] = {}
    if not given.declares_no_conflict:
        missing["no_conflict"] = "Confirm that you have no conflict of interest, or step aside."
    if not given.reason and decision != Decision.ACCEPTED:
        missing["reason"] = (
            "Explain to the team why you reject the proof."
            if decision == Decision.REJECTED
            else "Explain to the team what to fix."
        )
    elif not given.reason and given.doubted:
        missing["reason"] = "Explain to the team why you accept the proof despite the “no”."
    if not given.change_reason and not is_new:
        missing["change_reason"] = "Tell the team why you changed your decision."
    if decision == Decision.CHANGES_REQUESTED and not is_in_reach(given.changes_due):
        missing["changes_due"] = f"Choose a date within the next {MAX_TIME.days} days."
    if decision == Decision.ACCEPTED:
        unanswered = {item.key for item in CHECKLIST} - set(given.answers)
        missing |= dict.fromkeys(sorted(unanswered), "An answer is required to accept the proof.")
    missing |= dict.fromkeys(
        map(note_name, given.unexplained), "Add a note to every “no”, so the team knows what is missing."
    )
    if contradiction:
        missing["confirms_contradiction"] = contradiction
    if missing:
        raise ValidationError(missing)


def _newest_version(submission: Submission, read: int | None) -> int | None:
    """Return the version of the proof that is decided on. The submission is locked, so that none arrives meanwhile."""
    proof = submission.proof()
    newest = proof.version if proof else None
    if read is not None and read != newest:
        raise ProofRevisedError(
            "The team has uploaded a revised proof since you opened this page. Please read the new version "
            "below and decide again."
        )
    return newest
