"""The export of reviews: a row for every decision that was ever made, and for every review that waits for one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from docvqa_site.accounts.models import User
from docvqa_site.reviews.history import PastDecision, history_of
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.selectors import reviewable_submissions, visible_reviews

BATCH = 500
COLUMNS = (
    "submission",
    "title",
    "team",
    "track",
    "reviewer",
    "version",
    "decision",
    "counts",
    "reason",
    "change_reason",
    "checklist",
    "notes",
    "changes_due",
    "declares_no_conflict",
    "created_at",
    "decided_at",
)
HIDDEN = "hidden until you decide or the verdict is final"


def review_rows(organizer: User) -> Iterator[dict[str, object]]:
    """Yield the rows: of proofs that the organizer has yet to judge alone, without what others decided."""
    reviews = ProofReview.objects.filter(submission__in=reviewable_submissions(organizer)).order_by("pk")
    reviews = reviews.select_related("submission__team", "submission__track", "reviewer")
    found = reviews.iterator(BATCH)
    while batch := list(islice(found, BATCH)):
        yield from _rows(batch, organizer)


def _rows(reviews: Sequence[ProofReview], organizer: User) -> Iterator[dict[str, object]]:
    keys = [review.pk for review in reviews]
    visible = set(visible_reviews(organizer).filter(pk__in=keys).values_list("pk", flat=True))
    made: dict[int, list[PastDecision]] = {}
    for one in history_of(reviews).decisions:
        made.setdefault(one.review.pk, []).append(one)
    for review in reviews:
        if review.pk not in visible:
            yield _row(review, decision=HIDDEN)
        else:
            yield from _decisions(review, made.get(review.pk, []))


def _decisions(review: ProofReview, made: Iterable[PastDecision]) -> Iterator[dict[str, object]]:
    decisions = list(made)
    for one in decisions:
        counts = review.is_decided and one is decisions[-1]
        written = one.written.texts()
        yield _row(
            review,
            version=one.version,
            decision=one.decision.value,
            counts=counts,
            checklist=dict(one.written.answers),
            decided_at=one.at,
            **written,
        )
    if not review.is_decided:
        yield _row(review, decision=Decision.PENDING.value, counts=False)


def _row(review: ProofReview, **found: object) -> dict[str, object]:
    known = {
        "submission": review.submission_id,
        "title": review.submission.title,
        "team": review.submission.team.name,
        "track": review.submission.track.slug,
        "reviewer": review.reviewer.email,
        "created_at": review.created_at,
    }
    return {**dict.fromkeys(COLUMNS), **known, **found}
