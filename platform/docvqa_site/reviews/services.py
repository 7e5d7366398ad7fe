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
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.deadlines import MAX_TIME, SECOND_OPINION_TIME, default_due, is_in_reach
from docvqa_site.reviews.drafts import Draft, draft_of
from docvqa_site.reviews.models import LONE_REJECTION, Decision, ProofReview
from docvqa_site.reviews.selectors import conflict_of_interest, coordinates, verdict_on
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import Artifact, Submission, SubmissionState
from docvqa_site.teams.selectors import active_members

# What one decision means while the proof is under review: in the subject of the team's email, and in its text.
OPINIONS = {
    Decision.ACCEPTED: ("accepted by a reviewer", "accepted"),
    Decision.CHANGES_REQUESTED: ("changes requested", "asked for changes to"),
    Decision.REJECTED: ("rejection proposed", "proposes to reject"),
}
# In the subject once the decision has settled the review.
OUTCOMES = {
    (Decision.ACCEPTED, ResultStatus.VERIFIED): "accepted",
    (Decision.REJECTED, ResultStatus.REJECTED): "rejected",
}


def review_barred_because(submission: Submission, user: User) -> str:
    """Return why `user` may not review the submission's proof; empty if they may."""
    if not is_reviewer(user):
        return "Only organizers with permission to review can review proofs."
    if submission.submitted_at and submission.published_at is None:
        return "The team hasn't published this submission yet; reviews start once it is public."
    if coordinates(submission, user):
        return "You coordinate this review, so you don't decide on the proof."
    return conflict_of_interest(submission, user)


def decide(
    submission: Submission,
    decision: Decision,
    reason: str,
    checklist: Mapping[str, str],
    *,
    actor: User,
    notes: Mapping[str, str] | None = None,
    changes_due: date | None = None,
    declares_no_conflict: bool,
    version: int | None = None,
) -> ProofReview:
    """Record `actor`'s decision on the submission's proof, in place of an earlier one of theirs.

    Args:
        reason: Needed unless the decision is a first acceptance. Public when it is a rejection.
        checklist: Answers by item; all of them are needed to accept.
        notes: By item, for the team; needed where the answer is no.
        changes_due: By when the team must revise the proof, if changes are requested.
        declares_no_conflict: The reviewer's own word, beside what the history says; needed for every decision.
        version: Of the proof, as the actor read it; None for whichever is the newest.

    Raises:
        PermissionDenied: The actor isn't a reviewer, or has a conflict of interest.
        ValidationError: By field, what is missing; or the team has uploaded a newer version of the proof.
    """
    if rejection := review_barred_because(submission, actor):
        raise PermissionDenied(rejection)
    given = _draft(checklist, notes or {}, reason, changes_due, declares_no_conflict=declares_no_conflict)
    with transaction.atomic():
        # The submission's lock puts decisions in order, so that each mail reports the verdict after its decision.
        # A draft that is saved for the first time refers to the submission, and must not wait for this lock.
        submission = Submission.objects.select_for_update(no_key=True).get(pk=submission.pk)
        newest = _newest_version(submission, version)
        # A draft may be saved for the first time at this very moment.
        review, _ = ProofReview.objects.get_or_create(submission=submission, reviewer=actor)
        before = review.decision
        _require_complete(submission, decision, given, is_new=before == Decision.PENDING)
        _decide(review, decision, given)
        boards_changed(submission.track_id)
        record(
            actor,
            f"proof_review.{decision}",
            review,
            submission=str(submission.pk),
            before=before,
            version=newest,
            **given.model_dump(mode="json", exclude={"answers"}),
            checklist=review.checklist,
        )
        _notify_team(review)
    return review


def _draft(
    checklist: Mapping[str, str],
    notes: Mapping[str, str],
    reason: str,
    changes_due: date | None,
    *,
    declares_no_conflict: bool,
) -> Draft:
    if not set(checklist) | set(notes) <= {item.key for item in CHECKLIST}:
        raise ValidationError("An answer doesn't match the checklist.")
    try:
        return Draft.model_validate(
            {
                "answers": checklist,
                "notes": notes,
                "reason": reason,
                "changes_due": changes_due,
                "declares_no_conflict": declares_no_conflict,
            }
        )
    except MalformedError as error:
        raise ValidationError("An answer doesn't match the checklist, or a text is too long.") from error


def _decide(review: ProofReview, decision: Decision, given: Draft) -> None:
    review.decision, review.reason = decision, given.reason
    review.checklist, review.notes = {**given.answers}, {**given.notes}
    review.changes_due = given.changes_due if decision == Decision.CHANGES_REQUESTED else None
    review.declares_no_conflict, review.draft = given.declares_no_conflict, None
    review.decided_at = timezone.now()
    review.save()


def save_draft(submission: Submission, draft: Draft, *, actor: User) -> ProofReview:
    """Keep what the reviewer has written so far, which nobody else sees. A decision that was made stays as it is.

    Raises:
        PermissionDenied: The actor isn't a reviewer, or has a conflict of interest.
    """
    if rejection := review_barred_because(submission, actor):
        raise PermissionDenied(rejection)
    with transaction.atomic():
        # No audit entry: nothing has changed for anybody else.
        review, _ = ProofReview.objects.get_or_create(submission=submission, reviewer=actor)
        review.draft, review.drafted_at = draft.model_dump(mode="json"), timezone.now()
        review.save(update_fields=["draft", "drafted_at"])
    return review


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
    lines = [
        f"A reviewer rejected the privacy proof of {current}, and no other reviewer disagreed within "
        f"{SECOND_OPINION_TIME.days} days. The result no longer has a rank.",
        "Read the reviewer's notes, reply, upload a revised proof or appeal:",
        settings.SITE_URL + reverse("reviews:team", args=[submission]),
    ]
    notify(active_members(current.team), Kind.PROOFS, f"Proof of {current}: rejected", lines)
    return True


def reopen(*, artifact: Artifact, actor: User, **_: object) -> None:
    """Take every decision on a proof back, since it was revised; receives `submissions.signals.proof_revised`.

    What was decided and why stays in the audit record, and a reviewer finds what they wrote as a draft.
    """
    submission = artifact.submission
    decided = list(submission.reviews.exclude(decision=Decision.PENDING).select_related("reviewer"))
    for review in decided:
        take_back(review, actor=actor, version=artifact.version)
    page = settings.SITE_URL + reverse("reviews:desk", args=[submission.pk])
    text = f"Version {artifact.version} of the privacy proof of {submission} is ready for another review."
    note = f"The team's summary of changes: {artifact.note}" if artifact.note else ""
    notify(
        [review.reviewer for review in decided if review.reviewer.is_active],
        Kind.REVIEWING,
        f"Proof of {submission}: revised",
        filter(None, [text, note, page]),
    )


def take_back(review: ProofReview, *, actor: User, **details: int) -> None:
    """Undo a decision, if there is one; what was written stays as the reviewer's draft. The audit record keeps it."""
    if not review.is_decided:
        return
    before, reason = review.decision, review.reason
    # They read the new version with what they found in the old one.
    review.draft = draft_of(review).model_dump(mode="json")
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


def _require_complete(submission: Submission, decision: Decision, given: Draft, *, is_new: bool) -> None:
    if submission.state != SubmissionState.SUBMITTED:
        raise ValidationError(f"This submission is {submission.state}; only submitted ones can be reviewed.")
    if decision == Decision.PENDING:
        raise ValidationError("Accept, request changes or reject.")
    missing: dict[str, str] = {}
    if not given.declares_no_conflict:
        missing["no_conflict"] = "Confirm that you have no conflict of interest, or step aside."
    if not given.reason and decision != Decision.ACCEPTED:
        missing["reason"] = "Tell the team what to fix."
    elif not given.reason and not is_new:
        missing["reason"] = "Tell the team why you changed your decision."
    if decision == Decision.CHANGES_REQUESTED and not is_in_reach(given.changes_due):
        missing["changes_due"] = f"Choose a date within the next {MAX_TIME.days} days."
    if decision == Decision.ACCEPTED:
        unanswered = {item.key for item in CHECKLIST} - set(given.answers)
        missing |= dict.fromkeys(sorted(unanswered), "Answer this question to accept the proof.")
    missing |= dict.fromkeys(
        given.unexplained, "Add a note to every “no”, so the team knows what is missing."
    )
    if missing:
        raise ValidationError(missing)


def _newest_version(submission: Submission, read: int | None) -> int | None:
    """Return the version of the proof that is decided on. The submission is locked, so that none arrives meanwhile."""
    proof = submission.proof()
    newest = proof.version if proof else None
    if read is not None and read != newest:
        raise ValidationError(
            "The team has uploaded a revised proof since you opened this page. Please read the new version "
            "below and decide again."
        )
    return newest


def _notify_team(review: ProofReview) -> None:
    submission = review.submission
    verdict = verdict_on(submission)
    decision = Decision(review.decision)
    subject, opinion = OPINIONS[decision]
    outcome = OUTCOMES.get((decision, verdict.status))
    # The reason of a rejection is above already.
    why = "" if verdict.rejection else f": {verdict.reason}"
    lines = [
        f"A reviewer {outcome or opinion} the privacy proof of {submission}.",
        review.reason,
        f"Please upload a revised proof by {review.changes_due:%b %-d, %Y}." if review.changes_due else "",
        f"{verdict.status.label.capitalize()}{why}.",
        f"The run loses its rank if a second reviewer agrees, or if no one objects within "
        f"{SECOND_OPINION_TIME.days} days."
        if verdict.is_proposal
        else "",
        "Read the reviewer's notes and reply:",
        settings.SITE_URL + reverse("reviews:team", args=[submission.pk]),
    ]
    notify(
        active_members(submission.team),
        Kind.PROOFS,
        f"Proof of {submission}: {outcome or subject}",
        filter(None, lines),
    )
