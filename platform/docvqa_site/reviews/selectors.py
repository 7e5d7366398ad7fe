"""Queries about reviews."""

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from enum import IntFlag, StrEnum
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Cast

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import WITH_PROOFS
from docvqa_site.reviews import tallies
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME, default_due, is_in_reach
from docvqa_site.reviews.models import LONE_REJECTION, Appeal, Decision, ProofReview, Recusal
from docvqa_site.reviews.verdict import ResultStatus, Tally, Verdict, status_of, verdict, verdict_of
from docvqa_site.submissions.keys import KeyAsText
from docvqa_site.submissions.models import Artifact, Submission, SubmissionState
from docvqa_site.submissions.selectors import is_scored, private_submissions
from docvqa_site.teams.selectors import team_of
from evaluator.messages.jobs import ArtifactKind

PENDING = {"decision": Decision.PENDING}
MOST_WITHOUT_REVIEWERS = 100


def verdict_on(submission: Submission) -> Verdict:
    """Return the status of the submission's results. No query if reviews are prefetched and the track is loaded."""
    decisions = [(Decision(review.decision), review.reason) for review in submission.reviews.all()]
    return verdict(
        decisions,
        submission.track.reviews_needed,
        rejection_stands=submission.rejection_stands,
        revises_rejected=submission.revises_rejected,
    )


def verdict_of_counts(submission: Submission, rejections: Iterable[str] = ()) -> Verdict:
    """Return the status of the submission's results, without a query; `rejections` are their reasons, if needed."""
    tally = Tally(*(getattr(submission, name) for name in Tally._fields))
    return verdict_of(tally, submission.track.reviews_needed, rejections)


def tallies_of(submissions: QuerySet[Submission]) -> dict[UUID, Tally]:
    """Return how many reviewers of each submission have made each decision."""
    counts = submissions.values_list("pk", *Tally._fields)
    return {pk: Tally(*found) for pk, *found in counts}


def verdicts_on(track: Track, submissions: Sequence[str], tallies: Sequence[Tally]) -> list[Verdict]:
    """Return the status of the results of submissions of the track, given by their keys and how they were decided.

    The reasons of rejected ones take a query.
    """
    required = track.reviews_needed
    if required is None:
        return [verdict_of(tally, None) for tally in tallies]
    reasons: dict[str, list[str]] = {
        submission: []
        for submission, tally in zip(submissions, tallies, strict=True)
        if status_of(tally, required) is ResultStatus.REJECTED
    }
    for submission, reason in _rejections(reasons) if reasons else ():
        reasons[submission].append(reason)
    return [
        verdict_of(tally, required, reasons.get(submission, ()))
        for submission, tally in zip(submissions, tallies, strict=True)
    ]


def _rejections(submissions: Collection[str]) -> "QuerySet[ProofReview, tuple[str, str]]":
    """Return the submissions with the reason of each rejection, the oldest first."""
    keys = list(map(UUID, submissions))
    rejected = ProofReview.objects.filter(submission__in=keys, decision=Decision.REJECTED)
    return rejected.values_list(KeyAsText("submission_id"), "reason")


def reviewers(*, include_superusers: bool = True) -> QuerySet[User]:
    """Return everyone who may review proofs: superusers may do everything, without being appointed."""
    backend = "django.contrib.auth.backends.ModelBackend"
    found = User.objects.with_perm(
        "reviews.review_proofs", include_superusers=include_superusers, backend=backend
    )
    return found.filter(is_staff=True)


def assignments() -> QuerySet[ProofReview]:
    """Return which decisions are assigned and to be made. Whoever is no longer a reviewer makes none."""
    return ProofReview.objects.filter(assigned_at__isnull=False, reviewer__in=reviewers(), **PENDING)


# In this and what follows, `conflicts` are the person's, where the request has looked them up already.
def reviewable_submissions(reviewer: User, conflicts: Conflicts | None = None) -> QuerySet[Submission]:
    """Return what was published in a track with proofs and `reviewer` has no conflict of interest about."""
    judgeable = judgeable_submissions(reviewer, conflicts)
    return judgeable.filter(track__ranking__in=WITH_PROOFS, published_at__isnull=False)


def judgeable_submissions(user: User, conflicts: Conflicts | None = None) -> QuerySet[Submission]:
    """Return what has been submitted and `user` has no conflict of interest about; see `Conflicts`.

    Of an organizer of single tracks, in those alone.
    """
    return (conflicts or Conflicts(user)).exclude_from(Submission.objects.filter(submitted_at__isnull=False))


def may_organize(user: User | AnonymousUser, submission: Submission) -> bool:
    """Return whether the pages of the submission's runs on the organizers' desk are open to `user`."""
    if not isinstance(user, User):
        return False
    opens_desk = user.has_perms(("challenge.organize", "submissions.view_submission"))
    return opens_desk and judgeable_submissions(user).filter(pk=submission.pk).exists()


def may_open_desk(user: User | AnonymousUser, submission: Submission) -> bool:
    """Return whether the desk of the submission's proof is open to `user`, a reviewer."""
    if not isinstance(user, User) or not is_reviewer(user) or submission.state != SubmissionState.SUBMITTED:
        return False
    return reviewable_submissions(user).filter(pk=submission.pk).exists()


def awaiting_review(reviewer: User, conflicts: Conflicts | None = None) -> QuerySet[Submission]:
    """Return the scored submissions that need a decision of `reviewer`, who has made none, oldest first."""
    conflicts = conflicts or Conflicts(reviewer)
    with_proofs = judgeable_submissions(reviewer, conflicts).filter(track__ranking__in=WITH_PROOFS)
    open_ones = with_proofs.exclude(pk__in=list(conflicts.recusals))
    return awaiting_decisions(open_ones.filter(~Exists(_decisions_of(reviewer))))


def awaiting_decisions(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """Return those of the private submissions that wait for reviewers and not for the team, oldest first."""
    return submissions.filter(
        is_scored(),
        waits_for_reviewers(),
        state=SubmissionState.SUBMITTED,
        published_at__isnull=False,
    ).order_by("submitted_at", "pk")


class ProofMark(IntFlag):
    """What is counted of undecided proofs; all but `WAITING` holds for others too.

    `TRIED` are those on which somebody has decided or stepped aside.
    """

    WAITING = 1
    OVERDUE = 2
    UNASSIGNED = 4
    CONTESTED = 8
    UNSEEN = 16
    TRIED = 32


def undecided_kinds(submissions: QuerySet[Submission], reviewer: User, due: datetime) -> "QuerySet[Any, Any]":
    """Return how many proofs are `undecided`, by the number of what each is, in one pass over them.

    Args:
        reviewer: Whose decision counts as seen, and whose recusal.
        due: What was published before it is overdue.
    """
    decided = ProofReview.objects.filter(reviewer=reviewer).exclude(**PENDING)
    seen = Q(pk__in=decided.values("submission")) | Q(pk__in=reviewer.recusals.values("submission"))
    kinds = {
        # Of undecided ones alone: a rejected one is among them only with an open appeal; see `waits_for_reviewers`.
        ProofMark.WAITING: Q(
            Q(change_requests=0) | Q(rejections__gt=0) | tallies.rejected(), state=SubmissionState.SUBMITTED
        ),
        ProofMark.OVERDUE: Q(published_at__lt=due),
        ProofMark.UNASSIGNED: too_few_asked(),
        ProofMark.CONTESTED: Q(rejections__gt=0),
        ProofMark.UNSEEN: ~seen,
        ProofMark.TRIED: _tried(),
    }
    marks: Any = sum(
        (
            Case(When(condition, then=Value(mark.value)), default=Value(0))
            for mark, condition in kinds.items()
        ),
        Value(0),
    )
    return undecided(submissions).order_by().values(part=Cast(marks, CharField())).annotate(count=Count("pk"))


def too_few_asked() -> Q:
    """Return the condition that fewer reviewers are assigned to an undecided proof than have yet to accept it.

    Of contested ones it is false: all reviewers were asked by email. Without objections, all who decided have accepted.
    """
    lacking = F("submission__track__required_reviews") - F("submission__acceptances")
    counted = assignments().order_by().values("submission").annotate(count=Count("pk"))
    return Q(rejections=0) & ~Q(pk__in=counted.filter(count__gte=lacking).values("submission"))


def _tried() -> Q:
    """Return the condition that somebody has decided on a proof, or stepped aside."""
    return Q(acceptances__gt=0) | Q(rejections__gt=0) | Q(pk__in=Recusal.objects.values("submission"))


def undecided(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """Return those with a scored run whose proof is neither accepted nor rejected for good: somebody has to act."""
    is_verified = tallies.verified(F("track__required_reviews"))
    is_open = Q(~tallies.rejected(), ~is_verified) | appealed()
    with_proofs = submissions.filter(track__ranking__in=WITH_PROOFS, published_at__isnull=False)
    return with_proofs.filter(is_scored(), is_open).order_by("submitted_at", "pk")


def without_reviewers(submissions: QuerySet[Submission]) -> set[UUID]:
    """Return which of these proofs wait for a reviewer while nobody is left who can decide, or too few to accept them.

    Looks at the oldest `MOST_WITHOUT_REVIEWERS` on which somebody has decided or stepped aside.
    """
    waiting = awaiting_decisions(submissions.filter(_tried(), track__ranking__in=WITH_PROOFS))
    # Who has decided may decide otherwise.
    decided = F("acceptances") + F("rejections") + F("change_requests")
    lacking = waiting.annotate(lacking=F("track__required_reviews") - decided).values_list("pk", "lacking")
    left = {pk: max(count, 1) for pk, count in lacking[:MOST_WITHOUT_REVIEWERS]}
    for reviewer in reviewers().filter(is_active=True) if left else ():
        for pk in awaiting_review(reviewer).filter(pk__in=left).values_list("pk", flat=True):
            left[pk] -= 1
        left = {pk: count for pk, count in left.items() if count}
        if not left:
            break
    return set(left)


def waits_for_reviewers() -> Q:
    """Return the condition that a proof waits for reviewers, if it isn't accepted, and not for its team.

    Those under review do, unless changes were requested and nobody rejects it, and rejected ones with an open appeal.
    """
    is_verified = tallies.verified(F("track__required_reviews"))
    is_under_review = Q(~tallies.rejected(), ~is_verified) & (Q(change_requests=0) | Q(rejections__gt=0))
    return is_under_review | appealed()


def appealed() -> Q:
    """Return the condition that a proof is rejected, and its team's appeal waits for another reviewer."""
    # Not by `Exists`: there are few appeals, and PostgreSQL would expect to look for one with each submission.
    return Q(pk__in=open_appeals().values("submission"))


class AppealState(StrEnum):
    """What has become of an appeal; `appeals` has the conditions. Only an open one keeps a verdict from being final."""

    OPEN = "open"
    REVISED = "revised"
    REJECTED_AGAIN = "rejected again"
    OVERTURNED = "overturned"


def appeals() -> "QuerySet[Any, Any]":
    """Return all appeals, each with its `state`."""
    again = ProofReview.objects.filter(
        submission=OuterRef("submission"), decision=Decision.REJECTED, decided_at__gt=OuterRef("created_at")
    )
    revised = Artifact.objects.filter(
        submission=OuterRef("submission"),
        kind=ArtifactKind.PRIVACY_PROOF,
        created_at__gt=OuterRef("created_at"),
    )
    rejected = Submission.objects.filter(tallies.rejected(), pk=OuterRef("submission"))
    state = Case(
        When(Exists(revised), then=Value(AppealState.REVISED)),
        When(~Exists(rejected), then=Value(AppealState.OVERTURNED)),
        When(Exists(again), then=Value(AppealState.REJECTED_AGAIN)),
        default=Value(AppealState.OPEN),
        output_field=CharField(),
    )
    return Appeal.objects.annotate(state=state)


def open_appeals() -> "QuerySet[Any, Any]":
    """Return the appeals that wait for another reviewer."""
    return appeals().filter(state=AppealState.OPEN)


def opinions_due() -> dict[UUID, date]:
    """Return by when another reviewer can contradict each rejection that nobody has confirmed or contradicted yet."""
    alone = {f"submission__{name}": count for name, count in LONE_REJECTION.items()}
    found = ProofReview.objects.filter(
        **alone, submission__rejection_stands=False, decision=Decision.REJECTED, decided_at__isnull=False
    )
    return {
        key: (at + SECOND_OPINION_TIME).date()
        for key, at in found.values_list("submission", "decided_at")
        if at
    }


def review_due(submission: Submission) -> date:
    """Return the day until which a review that begins now is expected: before a lone rejection takes effect."""
    day = opinions_due().get(submission.pk)
    return min(day, default_due()) if day and is_in_reach(day) else default_due()


def contested_proofs(submissions: QuerySet[Submission], most: int) -> list[tuple[str, date | None]]:
    """Return the titles of the first proofs that wait for another reviewer since one rejects them, and by when."""
    waiting = awaiting_decisions(submissions.filter(rejections__gt=0, track__ranking__in=WITH_PROOFS))
    due = opinions_due()
    return [(title, due.get(pk)) for pk, title in waiting.values_list("pk", "title")[:most]]


def unassigned_proofs(submissions: QuerySet[Submission], most: int) -> list[tuple[UUID, str]]:
    """Return the keys and titles of the first proofs that wait, and that too few are asked to decide on."""
    waiting = submissions.filter(too_few_asked(), track__ranking__in=WITH_PROOFS)
    return list(awaiting_decisions(waiting).values_list("pk", "title")[:most])


def settled() -> Q:
    """Return the condition that the verdict on a proof is final, as long as nobody revises it or appeals."""
    is_verified = tallies.verified(F("track__required_reviews"))
    return (is_verified | tallies.rejected()) & ~appealed()


def is_settled(submission: Submission) -> bool:
    """Return whether the verdict on the proof is final; `settled` has it for a query."""
    return not verdict_on(submission).is_open and not _has_appeal(submission)


def _has_appeal(submission: Submission) -> bool:
    return open_appeals().filter(submission=submission).exists()


def reads_decisions(found: Verdict, own: ProofReview | None, *, has_appeal: bool) -> bool:
    """Return whether a reviewer of the proof, with this review of their `own`, reads what others decided about it.

    `has_appeal` says whether an appeal is open, so that the verdict isn't final.
    """
    return (own is not None and own.is_decided) or not (found.is_open or has_appeal)


def disclosed_submissions(user: User, conflicts: Conflicts | None = None) -> QuerySet[Submission]:
    """Return the submissions of which `user` may read every decision.

    A reviewer judges alone: they read what others decided once they have decided themselves, or the verdict is final.
    Organizers who don't review read everything, and so do reviewers who coordinate a review instead of deciding.
    Whoever has a conflict of interest reads nothing.
    """
    conflicts = conflicts or Conflicts(user)
    return _disclosed(reviewable_submissions(user, conflicts), conflicts)


def _disclosed(reviewable: QuerySet[Submission], conflicts: Conflicts) -> QuerySet[Submission]:
    user = conflicts.person
    if not is_reviewer(user):
        return reviewable
    decided = ProofReview.objects.filter(reviewer=user).exclude(**PENDING).values("submission")
    coordinated = conflicts.recused_from(Recusal.Why.COORDINATION)
    return reviewable.filter(settled() | Q(pk__in=decided) | Q(pk__in=coordinated))


def sees_decisions(submission: Submission, user: User, conflicts: Conflicts | None = None) -> bool:
    """Return whether `user` may read every decision on the proof; so `disclosed_submissions` has it, for a query."""
    conflicts = conflicts or Conflicts(user)
    is_reviewable = submission.track.reviews_needed is not None and submission.published_at is not None
    if not is_reviewable or conflicts.about(submission):
        return False
    if not is_reviewer(user) or submission.pk in conflicts.recused_from(Recusal.Why.COORDINATION):
        return True
    own = next((review for review in submission.reviews.all() if review.reviewer_id == user.pk), None)
    return reads_decisions(verdict_on(submission), own, has_appeal=_has_appeal(submission))


def judges_alone(submission: Submission, user: User) -> bool:
    """Return whether `user` is a reviewer from whom the decisions on the proof are hidden until they decide."""
    if not is_reviewer(user):
        return False
    conflicts = Conflicts(user)
    own = reviewable_submissions(user, conflicts).filter(pk=submission.pk)
    return own.exists() and not sees_decisions(submission, user, conflicts)


def visible_reviews(user: User) -> QuerySet[ProofReview]:
    """Return the reviews that `user` may read: all of disclosed submissions, and their own."""
    conflicts = Conflicts(user)
    reviewable = reviewable_submissions(user, conflicts)
    own = Q(reviewer=user, submission__in=reviewable)
    return ProofReview.objects.filter(own | Q(submission__in=_disclosed(reviewable, conflicts)))


def hidden_reviews(user: User) -> list[int]:
    """Return the keys of the reviews that `user` may not read, or not yet."""
    if not ProofReview.objects.exclude(reviewer=user).exists():
        return []
    visible = visible_reviews(user).values("pk").order_by()
    return list(ProofReview.objects.exclude(pk__in=visible).order_by().values_list("pk", flat=True))


def reviewer_numbers(submission: Submission) -> dict[int, int]:
    """Return the number of each reviewer by which the team knows them, by their key."""
    rows = submission.reviews.order_by("pk").values_list("reviewer_id", flat=True)
    return {reviewer: number for number, reviewer in enumerate(rows, 1)}


def readable_proofs(user: User) -> QuerySet[Artifact]:
    """Return the proofs that `user` may read; see `readable_artifacts`."""
    proofs = readable_artifacts(user).filter(kind=ArtifactKind.PRIVACY_PROOF)
    return proofs.select_related("submission", "upload")


def readable_artifacts(user: User) -> QuerySet[Artifact]:
    """Return the files that `user` may read for a review: their team's, and what they see in private or review.

    A conflict of interest hides what isn't their team's from everybody, superusers too.
    """
    readable = Q(submission__team=team_of(user))
    conflicts = Conflicts(user)
    readable |= Q(submission__in=conflicts.exclude_from(private_submissions(user)))
    if user.has_perm("reviews.review_proofs"):
        readable |= Q(submission__in=reviewable_submissions(user, conflicts))
    return Artifact.objects.filter(readable)


def staged_proofs(user: User) -> QuerySet[Artifact]:
    """Return the revised proofs that the user's team hasn't sent yet; nobody else reads them."""
    return Artifact.staged.filter(submission__team=team_of(user)).select_related("submission", "upload")


def _decisions_of(reviewer: User) -> QuerySet[ProofReview]:
    return ProofReview.objects.filter(submission=OuterRef("pk"), reviewer=reviewer).exclude(**PENDING)
