"""The rules in SQL are those in Python, for every set of up to three decisions."""

from datetime import timedelta
from itertools import combinations_with_replacement, islice

import pytest
from django.utils import timezone

from portal.reviews.models import Appeal, Decision, ProofReview
from portal.reviews.queue import Part, queue_of
from portal.reviews.selectors import awaiting_review, decisions_on
from portal.reviews.tallies import rejected_in, verified_in
from portal.reviews.verdict import ResultStatus, verdict
from portal.submissions.models import RunState, Submission, SubmissionState
from tests.portal.factories import make_run, make_submission, make_team, make_track
from tests.portal.reviews.test_decisions import make_reviewer

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[0, 1, 2, 3])
def track(request):
    """A track with a submission for every combination of decisions; every second one has an appeal."""
    track = make_track("anls", required_reviews=request.param)
    reviewers = [make_reviewer() for _ in range(3)]
    team, now = make_team(), timezone.now()
    for number, decisions in enumerate(
        each for length in range(4) for each in combinations_with_replacement(Decision, length)
    ):
        submission = make_submission(team, track, state=SubmissionState.SUBMITTED)
        make_run(submission, budget=1.0, state=RunState.SCORED)
        for reviewer, decision in zip(reviewers, decisions, strict=False):
            ProofReview.objects.create(
                submission=submission,
                reviewer=reviewer,
                decision=decision,
                reason="a reason",
                decided_at=None if decision == Decision.PENDING else now,
            )
        if number % 2:
            since = now - timedelta(days=1) if number % 4 == 1 else now + timedelta(days=1)
            Appeal.objects.create(
                submission=submission, author=submission.created_by, text="No.", created_at=since
            )
    return track


def test_boards_select_what_the_verdict_says(track):
    keys = list(Submission.objects.filter(track=track).values_list("pk", flat=True))
    statuses = {pk: verdict(found, track.required_reviews).status for pk, found in decisions_on(keys).items()}
    for chosen, status in ((rejected_in, ResultStatus.REJECTED), (verified_in, ResultStatus.VERIFIED)):
        expected = {pk for pk, found in statuses.items() if found == status}
        assert {row["pk"] for row in chosen(track)} == expected


def test_the_queue_and_the_count_in_the_menu_agree(track):
    for reviewer in [make_reviewer(), *(review.reviewer for review in islice(ProofReview.objects.all(), 20))]:
        (needed,) = [section for section in queue_of(reviewer) if section.part == Part.NEEDS_ME]
        assert list(awaiting_review(reviewer)) == [entry.submission for entry in needed.entries]
