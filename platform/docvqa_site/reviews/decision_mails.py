"""What the team, other reviewers and organizers are sent after a decision on a proof."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME
from docvqa_site.reviews.drafts import Draft, stored_draft, version_of
from docvqa_site.reviews.eligibility import eligible_reviewers, organizers_for
from docvqa_site.reviews.models import Appeal, Decision, ProofReview
from docvqa_site.reviews.selectors import reviewer_numbers, verdict_on
from docvqa_site.reviews.verdict import ResultStatus, Verdict
from docvqa_site.reviews.verdict import verdict as verdict_of_decisions
from docvqa_site.submissions.models import Submission
from docvqa_site.teams.selectors import active_members

# What one decision means while the proof is under review: in the subject of the team's email, and in its text.
OPINIONS = {
    Decision.ACCEPTED: ("accepted by a reviewer", "accepted"),
    Decision.CHANGES_REQUESTED: ("changes requested", "asked for changes to"),
    Decision.REJECTED: ("rejection proposed", "proposes to reject"),
}
# Once the decision has settled the review: in the text, and in the subject.
OUTCOMES = {
    (Decision.ACCEPTED, ResultStatus.VERIFIED): ("accepted", "accepted by enough reviewers"),
    (Decision.REJECTED, ResultStatus.REJECTED): ("rejected", "rejected"),
}

# To reviewers, in the subject.
OUTCOME_WORDS = {ResultStatus.VERIFIED: "accepted by enough reviewers", ResultStatus.REJECTED: "rejected"}

# Where nobody can make the decision that a proof needs: for reviewers and organizers, and for organizers.
NOBODY_LEFT = (
    "Nobody else can review this proof: all other reviewers have decided, stepped aside or have a conflict."
)
ADD_REVIEWER = "Give somebody else permission to decide on privacy proofs, then assign them:"


def takes_effect(review: ProofReview) -> datetime:
    """Return when a decided review withholds the rank, if it proposes a rejection and nobody contradicts it."""
    return (review.decided_at or timezone.now()) + SECOND_OPINION_TIME


def mail_decision(review: ProofReview, given: Draft, before: Decision) -> None:
    """Mail the decision to the team; and where another reviewer is needed, to those who can decide or assign one.

    Args:
        given: What the reviewer wrote with the decision; the preview on the desk shows the same of it.
        before: What the same reviewer had decided.
    """
    submission = review.submission
    verdict = verdict_on(submission)
    decision = Decision(review.decision)
    subject, opinion = OPINIONS[decision]
    outcome, subject = OUTCOMES.get((decision, verdict.status), (opinion, subject))
    is_final = decision is Decision.REJECTED and bool(verdict.rejection)
    together = _rejecting(submission) if is_final else [review]
    who = "A reviewer" if len(together) == 1 else f"{len(together)} reviewers"
    text = f"{who} {outcome} the privacy proof of “{submission}”."
    if before != Decision.PENDING:
        number = reviewer_numbers(submission)[review.reviewer_id]
        named = f"Reviewer {number} {{}} their decision on the privacy proof of “{submission}”"
        if before == decision:
            subject = f"{subject} (decision updated)"
            text = f"{named.format('updated')}, which is still “{decision.label}”."
        else:
            subject = f"{subject} (decision changed)"
            text = f"{named.format('changed')} from “{before.label}” to “{decision.label}”."
    lines = [
        text,
        "" if verdict.rejection else given.reason,
        f"Why the decision changed: {given.change_reason}" if given.change_reason else "",
        f"Please upload a revised proof by {review.changes_due:%b %-d, %Y}." if review.changes_due else "",
        *_status(submission, verdict),
        "Another reviewer still requests changes. Please upload a revised proof."
        if decision is Decision.ACCEPTED and verdict.asks_changes
        else "",
        f"The result loses its rank if a second reviewer agrees, or if no reviewer disagrees within "
        f"{SECOND_OPINION_TIME.days} days (by {takes_effect(review):%b %-d, %Y})."
        if verdict.is_proposal
        else "",
        *_notes(together, {review.pk: given}),
        "Read the history of the review and reply:",
    ]
    if _settles(review, before, verdict):
        _notify_reviewers(submission, verdict, but=review.reviewer)
    _mail_team(submission, f"Proof of {submission}: {subject}", lines)
    if verdict.is_proposal or verdict.is_split:
        _ask_for_another(review, f" by {takes_effect(review):%b %-d, %Y}" if verdict.is_proposal else "")


def _settles(review: ProofReview, before: Decision, verdict: Verdict) -> bool:
    """Return whether the decision made the verdict final: without it, or with the earlier one, it was another."""
    if verdict.is_open:
        return False
    submission = review.submission
    others = [Decision(one.decision) for one in submission.reviews.exclude(pk=review.pk)]
    earlier = verdict_of_decisions([(one, "") for one in [*others, before]], submission.track.reviews_needed)
    return earlier.status is not verdict.status


def _notify_reviewers(submission: Submission, verdict: Verdict, *, but: User | None = None) -> None:
    """Notify those who have decided of the final verdict; not the one whose decision led to it, who reads it there."""
    decided = submission.reviews.exclude(decision=Decision.PENDING).select_related("reviewer")
    people = [one.reviewer for one in decided if one.reviewer != but and one.reviewer.is_active]
    lines = [
        f"The review of the privacy proof of “{submission}” (track: {submission.track}) is complete. "
        f"{verdict.sentence}",
        "You can read every decision on the desk:",
        settings.SITE_URL + reverse("reviews:desk", args=[submission.pk]),
    ]
    notify(people, Kind.REVIEWING, f"Proof of {submission}: {OUTCOME_WORDS[verdict.status]}", lines)


def _rejecting(submission: Submission) -> list[ProofReview]:
    return list(submission.reviews.filter(decision=Decision.REJECTED))


def _notes(reviews: Sequence[ProofReview], given: Mapping[int, Draft]) -> Iterator[str]:
    """Yield the notes of these reviewers, each with whose they are; `given` has those that aren't stored yet."""
    for one in reviews:
        remarks = (given.get(one.pk) or stored_draft(one, version_of(one.submission.proof()))).remarks
        number = reviewer_numbers(one.submission).get(one.reviewer_id) if len(reviews) > 1 else None
        whose = f"Reviewer {number}'s" if number else "The reviewer's"
        if remarks:
            yield f"{whose} notes on questions of the checklist:"
        for remark in remarks:
            yield _noted(*remark)


def _noted(question: str, answer: str, note: str) -> str:
    """Return a note on a question, with the answer to it, in lines of its own."""
    return f"On the question “{question}”{f' (answer: {answer})' if answer else ''}:\n{note}"


def mail_standing_rejection(submission: Submission) -> None:
    """Mail to the team that nobody contradicted a rejection in time."""
    verdict = verdict_on(submission)
    lines = [
        f"A reviewer rejected the privacy proof of “{submission}”, and no other reviewer disagreed within "
        f"{SECOND_OPINION_TIME.days} days.",
        *_status(submission, verdict),
        "Read the reviewer's notes, reply, upload a revised proof or appeal:",
    ]
    _notify_reviewers(submission, verdict)
    _mail_team(submission, f"Proof of {submission}: rejected", lines)


def mail_withdrawal(review: ProofReview, decision: str) -> None:
    """Mail to the team that a reviewer with a conflict of interest no longer counts."""
    submission = review.submission
    number = reviewer_numbers(submission)[review.reviewer_id]
    lines = [
        f"Reviewer {number} has declared a conflict of interest, so their decision (“{decision}”) on the privacy "
        f"proof of “{submission}” has been withdrawn.",
        *_status(submission, verdict_on(submission)),
        "Read the history of the review:",
    ]
    _mail_team(submission, f"Proof of {submission}: a decision was withdrawn", lines)


def mail_readmission(review: ProofReview) -> None:
    """Mail to the team that a reviewer whose decision was withdrawn may decide again."""
    submission = review.submission
    number = reviewer_numbers(submission)[review.reviewer_id]
    lines = [
        f"The organizers have let Reviewer {number} review the privacy proof of “{submission}” again: the conflict of "
        "interest that this reviewer had declared no longer applies. The withdrawn decision isn't restored.",
        "Read the history of the review:",
    ]
    _mail_team(submission, f"Proof of {submission}: a reviewer can decide again", lines)


def _status(submission: Submission, verdict: Verdict) -> list[str]:
    """Return what is known of the results; of a rejection every reason, as it was written, and what the team can do."""
    if not verdict.rejection:
        return [verdict.sentence]
    numbers = reviewer_numbers(submission)
    reasons = [f"Reviewer {numbers[one.reviewer_id]}: {one.reason}" for one in _rejecting(submission)]
    choices = "You can upload a revised proof, which restarts the review"
    if not Appeal.objects.filter(submission=submission).exists():
        choices += ", or appeal once, so that another reviewer reads the unchanged proof"
    return [*reasons, f"{verdict.sentence} The result no longer has a rank.", f"{choices}."]


def _mail_team(submission: Submission, subject: str, lines: Iterable[str]) -> None:
    page = settings.SITE_URL + reverse("reviews:team", args=[submission.pk])
    notify(active_members(submission.team), Kind.PROOFS, subject, [*filter(None, lines), page])


def _ask_for_another(review: ProofReview, until: str) -> None:
    """Ask those who can decide to do so, and organizers for a reviewer. They judge alone, and don't read by whom.

    Who has just decided knows it, but is asked, too, where nobody else could assign a reviewer.
    """
    submission = review.submission
    subject = f"Proof of {submission}: another reviewer is needed"
    named = f"“{submission}” (track: {submission.track})"
    text = f"Another reviewer needs to decide on the privacy proof of {named}{until}."
    reviewers = eligible_reviewers(submission)
    desk = settings.SITE_URL + reverse("reviews:desk", args=[submission.pk])
    notify(reviewers, Kind.REVIEWING, subject, [text, desk])
    organizers = organizers_for(submission)
    others = [one for one in organizers if one not in reviewers and one != review.reviewer]
    page = settings.SITE_URL + reverse("reviews:assign", args=[submission.pk])
    todo = "Assign a reviewer if nobody has taken it:" if reviewers else f"{NOBODY_LEFT} {ADD_REVIEWER}"
    notify(others if reviewers else others or organizers, Kind.REVIEWING, subject, [text, todo, page])
