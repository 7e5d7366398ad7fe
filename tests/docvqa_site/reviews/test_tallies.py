"""The rules in SQL are those in Python, for every set of up to three decisions."""

from collections import Counter
from contextlib import suppress
from datetime import date, timedelta
from itertools import combinations_with_replacement

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.reviews.models import Appeal, Decision, ProofReview, Recusal
from docvqa_site.reviews.queue import Part, queue_of, waiting_for
from docvqa_site.reviews.recusals import recuse
from docvqa_site.reviews.selectors import disclosed_submissions, open_appeals, sees_decisions, tallies_of
from docvqa_site.reviews.services import let_rejections_stand
from docvqa_site.reviews.tallies import rejected, verified
from docvqa_site.reviews.verdict import ResultStatus, Verdict, status_of, verdict_of
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import make_reviewer, make_run, make_submission, make_team, make_track

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[0, 1, 2, 3])
def track(request):
    """A track with a submission for every combination of decisions; two of three have an appeal, open ones among them.

    Every third lone rejection stands, since nobody has contradicted it for long enough.
    """
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
                decided_at=None if decision == Decision.PENDING else now - timedelta(days=number % 3 * 4),
            )
        if number % 3:
            since = now - timedelta(days=1) if number % 2 else now + timedelta(days=1)
            Appeal.objects.create(
                submission=submission, author=submission.created_by, text="No.", created_at=since
            )
    assert let_rejections_stand(now) > 0
    return track


def test_boards_select_what_the_verdict_says(track):
    tallies = tallies_of(track.submissions.all())
    statuses = {pk: status_of(tally, track.required_reviews) for pk, tally in tallies.items()}
    for chosen, status in (
        (rejected(), ResultStatus.REJECTED),
        (verified(track.required_reviews), ResultStatus.VERIFIED),
    ):
        expected = {pk for pk, found in statuses.items() if found == status}
        assert set(track.submissions.filter(chosen).values_list("pk", flat=True)) == expected


def part_of(found: Verdict, *, has_decided: bool, is_appealed: bool) -> Part:
    """The part of those who have to act."""
    waits_for_reviewers = Part.WAITING_FOR_REVIEWERS if has_decided else Part.NEEDS_ME
    if found.status is ResultStatus.VERIFIED:
        return Part.DECIDED
    if found.status is ResultStatus.REJECTED:
        return waits_for_reviewers if is_appealed else Part.REJECTED
    return Part.WAITING_FOR_TEAM if found.asks_changes and not found.is_split else waits_for_reviewers


@pytest.fixture(autouse=True)
def whole_queue(monkeypatch):
    monkeypatch.setattr("docvqa_site.reviews.queue.SETTLED_LENGTH", 50)


def test_a_proof_is_in_the_part_of_those_who_have_to_act(track):
    tallies = tallies_of(track.submissions.all())
    verdicts = {pk: verdict_of(tally, track.required_reviews) for pk, tally in tallies.items()}
    appealed = set(open_appeals().values_list("submission", flat=True))
    assert appealed
    for reviewer in {review.reviewer for review in ProofReview.objects.all()}:
        decisions = reviewer.proof_reviews.exclude(decision=Decision.PENDING)
        decided = set(decisions.values_list("submission", flat=True))
        expected = {
            pk: part_of(found, has_decided=pk in decided, is_appealed=pk in appealed)
            for pk, found in verdicts.items()
        }
        sections = queue_of(reviewer)
        found = {entry.submission.pk: section.part for section in sections for entry in section.entries}
        assert found == expected
        totals = Counter(expected.values())
        assert {section.part: section.total for section in sections} == {part: totals[part] for part in Part}
        assert waiting_for(reviewer) == totals[Part.NEEDS_ME]


def test_the_oldest_come_first_of_the_accepted_ones_the_newest_and_before_all_what_is_due(track):
    for section in queue_of(make_reviewer()):
        found = [
            (entry.opinion_due or date.max, str(entry.submission.submitted_at)) for entry in section.entries
        ]
        assert found == sorted(found, reverse=section.part == Part.DECIDED)


def test_of_one_proof_and_of_all_the_same_reviewers_read_the_decisions(track):
    for reviewer in [make_reviewer(), *User.objects.filter(proof_reviews__isnull=False).distinct()]:
        for submission in track.submissions.order_by("pk")[::5]:
            recuse_if_undecided(submission, reviewer)
        disclosed = set(disclosed_submissions(reviewer).values_list("pk", flat=True))
        found = {one.pk for one in track.submissions.all() if sees_decisions(one, reviewer)}
        listed = {
            entry.submission.pk
            for part in queue_of(reviewer)
            for entry in part.entries
            if entry.shows_verdict
        }
        assert found == listed == disclosed
        assert disclosed


def recuse_if_undecided(submission, reviewer):
    """Let the reviewer coordinate the review, unless they have decided."""
    with suppress(ValidationError):
        recuse(submission, Recusal.Why.COORDINATION, actor=reviewer)
