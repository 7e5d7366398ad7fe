"""Queries about reviews."""

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from evaluator.contracts import ArtifactKind
from portal.accounts.models import User
from portal.challenge.models import Ranking
from portal.reviews.models import Decision, ProofReview
from portal.reviews.verdict import ResultStatus, Verdict, verdict
from portal.submissions.models import Artifact, Run, RunState, Submission, SubmissionState


def verdict_on(submission: Submission) -> Verdict:
    """Return the status of the submission's results. No query if reviews are prefetched and the track is loaded."""
    if not submission.track.is_private:
        return Verdict(ResultStatus.SCORED)
    decisions = [(Decision(review.decision), review.reason) for review in submission.reviews.all()]
    return verdict(decisions, submission.track.required_reviews)


def awaiting_review(reviewer: User) -> QuerySet[Submission]:
    """Return the provisional submissions with a scored run that `reviewer` has yet to decide on, oldest first."""
    decided = ProofReview.objects.filter(submission=OuterRef("pk"), reviewer=reviewer).exclude(
        decision=Decision.PENDING
    )
    scored = Run.objects.filter(submission=OuterRef("pk"), state=RunState.SCORED)
    accepted = Count("reviews", filter=Q(reviews__decision=Decision.ACCEPTED))
    rejected = ProofReview.objects.filter(submission=OuterRef("pk"), decision=Decision.REJECTED)
    return (
        Submission.objects.filter(
            ~Exists(decided), Exists(scored), state=SubmissionState.SUBMITTED, track__ranking=Ranking.ANLS
        )
        .exclude(team__memberships__user=reviewer)
        # As `portal.reviews.verdict.verdict` decides that a result is provisional.
        .filter(~Exists(rejected))
        .annotate(accepted=accepted)
        .filter(accepted__lt=F("track__required_reviews"))
        .select_related("team", "track")
        .prefetch_related("reviews")
        .order_by("submitted_at", "pk")
    )


def readable_proofs(user: User) -> QuerySet[Artifact]:
    """Return the proofs that `user` may read: all of them for staff, else those of their own team."""
    proofs = Artifact.objects.filter(kind=ArtifactKind.PRIVACY_PROOF).select_related("submission", "upload")
    return proofs if user.is_staff else proofs.filter(submission__team__memberships__user=user)
