"""Queries about reviews."""

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from evaluator.contracts import ArtifactKind
from portal.accounts.models import User
from portal.challenge.models import Ranking, Track
from portal.reviews.models import Decision, ProofReview
from portal.reviews.verdict import ResultStatus, Verdict, verdict
from portal.submissions.models import Artifact, Run, RunToken, Submission, SubmissionState
from portal.submissions.selectors import competed_tracks, private_submissions
from portal.teams.selectors import teams_ever_of


def verdict_on(submission: Submission) -> Verdict:
    """Return the status of the submission's results. No query if reviews are prefetched and the track is loaded."""
    if not submission.track.is_private:
        return Verdict(ResultStatus.SCORED)
    decisions = [(Decision(review.decision), review.reason) for review in submission.reviews.all()]
    return verdict(decisions, submission.track.required_reviews)


def verdicts_on(track: Track, submissions: Collection[UUID]) -> dict[UUID, Verdict]:
    """Return the status of the results of these submissions of the track, in one query where it requires proofs."""
    if not track.is_private:
        return dict.fromkeys(submissions, Verdict(ResultStatus.SCORED))
    return {
        submission: verdict(decisions, track.required_reviews)
        for submission, decisions in decisions_on(submissions).items()
    }


def decisions_on(submissions: Iterable[UUID]) -> dict[UUID, list[tuple[Decision, str]]]:
    """Return every reviewer's decision on each of these submissions, with its reason."""
    decisions: dict[UUID, list[tuple[Decision, str]]] = {submission: [] for submission in submissions}
    reviews = ProofReview.objects.filter(submission__in=decisions)
    for submission, decision, reason in reviews.values_list("submission_id", "decision", "reason"):
        decisions[submission].append((Decision(decision), reason))
    return decisions


def conflict_of_interest(submission: Submission, user: User) -> str:
    """Return why `user` may not judge the submission, by what they ever were; empty if nothing speaks against it."""
    if teams_ever_of(user).filter(pk=submission.team_id).exists():
        return "You are or were a member of the submitting team."
    if submission.created_by_id == user.pk or _issued_tokens(user).filter(team=submission.team_id).exists():
        return "You took part in this submission."
    if competed_tracks(user).filter(pk=submission.track_id).exists():
        return "A team of yours competes in this track."
    return ""


def reviewable_submissions(reviewer: User) -> QuerySet[Submission]:
    """Return what was published in a track with proofs and `reviewer` has no conflict of interest about."""
    return judgeable_submissions(reviewer).filter(track__ranking=Ranking.ANLS, published_at__isnull=False)


def judgeable_submissions(user: User) -> QuerySet[Submission]:
    """Return what has been submitted and `user` has no conflict of interest about; see `conflict_of_interest`."""
    # Fetched at once: they are few, and PostgreSQL can't estimate how much a query excludes by another one.
    teams = {*_keys(teams_ever_of(user)), *_issued_tokens(user).values_list("team", flat=True)}
    return (
        Submission.objects.filter(submitted_at__isnull=False)
        .exclude(team__in=teams)
        .exclude(created_by=user)
        .exclude(track__in=_keys(competed_tracks(user)))
    )


def awaiting_review(reviewer: User) -> QuerySet[Submission]:
    """Return the provisional submissions with a scored run that `reviewer` has yet to decide on, oldest first."""
    decided = ProofReview.objects.filter(submission=OuterRef("pk"), reviewer=reviewer).exclude(
        decision=Decision.PENDING
    )
    return provisional(reviewable_submissions(reviewer).filter(~Exists(decided)))


def provisional(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """Return those of the private submissions whose scored runs are provisional, oldest first.

    As `portal.reviews.verdict.verdict` decides it.
    """
    scored = Run.objects.filter(submission=OuterRef("pk"), scored_at__isnull=False)
    accepted = Count("reviews", filter=Q(reviews__decision=Decision.ACCEPTED))
    rejected = ProofReview.objects.filter(submission=OuterRef("pk"), decision=Decision.REJECTED)
    return (
        submissions.filter(
            Exists(scored), ~Exists(rejected), state=SubmissionState.SUBMITTED, published_at__isnull=False
        )
        .annotate(accepted=accepted)
        .filter(accepted__lt=F("track__required_reviews"))
        .order_by("submitted_at", "pk")
    )


def readable_proofs(user: User) -> QuerySet[Artifact]:
    """Return the proofs that `user` may read: where they see the submission's private part, or review it."""
    readable = Q(submission__in=private_submissions(user))
    if user.has_perm("reviews.review_proofs"):
        readable |= Q(submission__in=reviewable_submissions(user))
    return Artifact.objects.filter(readable, kind=ArtifactKind.PRIVACY_PROOF).select_related(
        "submission", "upload"
    )


def _keys(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def _issued_tokens(user: User) -> QuerySet[RunToken]:
    return RunToken.objects.filter(issued_to=user)
