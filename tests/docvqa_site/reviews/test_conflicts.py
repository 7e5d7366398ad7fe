"""Who may judge a proof, by everything that they ever were."""

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.selectors import awaiting_review, readable_proofs
from docvqa_site.reviews.services import decide
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Membership, PastMembership, Role, Team
from docvqa_site.teams.services import leave, remove_member
from tests.docvqa_site.factories import (
    make_reviewer,
    make_submission,
    make_team,
    make_token,
    make_track,
)

pytestmark = pytest.mark.django_db

YES = {item.key: "yes" for item in CHECKLIST}


@pytest.fixture
def reviewer() -> User:
    return make_reviewer()


def join(user: User, team: Team) -> Membership:
    return Membership.objects.create(team=team, user=user)


def rejected(submission: Submission, reviewer: User) -> str:
    """Why the reviewer may not judge it. They neither decide nor find it, wherever they look."""
    reason = Conflicts(reviewer).about(submission)
    with pytest.raises(PermissionDenied, match=reason):
        decide(submission, Decision.ACCEPTED, "", YES, actor=reviewer, declares_no_conflict=True)
    assert not ProofReview.objects.exists()
    assert submission not in awaiting_review(reviewer)
    return reason


def test_who_has_none_decides(submission: Submission, reviewer: User) -> None:
    assert Conflicts(reviewer).about(submission) == ""
    assert list(awaiting_review(reviewer)) == [submission]
    assert readable_proofs(reviewer).filter(submission=submission).exists()
    decide(submission, Decision.ACCEPTED, "", YES, actor=reviewer, declares_no_conflict=True)


def test_who_has_left_the_team_decides_nothing(submission: Submission, reviewer: User) -> None:
    join(reviewer, submission.team)
    leave(reviewer)
    assert "were a member" in rejected(submission, reviewer)
    assert not readable_proofs(reviewer).exists()


def test_who_was_removed_from_the_team_decides_nothing(submission: Submission, reviewer: User) -> None:
    membership = join(reviewer, submission.team)
    owner = submission.team.memberships.get(role=Role.OWNER).user
    remove_member(submission.team, membership.pk, by=owner)
    assert "were a member" in rejected(submission, reviewer)


def test_whom_the_administration_removed_decides_nothing(submission: Submission, reviewer: User) -> None:
    join(reviewer, submission.team).delete()
    past = PastMembership.objects.get(user=reviewer)
    assert past.team == submission.team
    assert past.joined_at < past.left_at
    assert "were a member" in rejected(submission, reviewer)


def test_who_created_it_decides_nothing(submission: Submission, reviewer: User) -> None:
    Submission.objects.filter(pk=submission.pk).update(created_by=reviewer)
    submission.refresh_from_db()
    assert "took part" in rejected(submission, reviewer)


def test_whom_its_run_tokens_were_issued_to_decides_nothing(submission: Submission, reviewer: User) -> None:
    make_token(submission.team, submission.track, issued_to=reviewer)
    assert "took part" in rejected(submission, reviewer)


@pytest.mark.parametrize("has_left", [False, True])
def test_who_competes_in_the_track_decides_nothing(
    submission: Submission, reviewer: User, has_left: bool
) -> None:
    team = make_team(reviewer)
    make_submission(team, submission.track, state=SubmissionState.SUBMITTED)
    if has_left:
        leave(reviewer)
    assert "competes in this track" in rejected(submission, reviewer)


@pytest.mark.parametrize(
    "fields",
    [{"is_baseline": True, "state": SubmissionState.SUBMITTED}, {"state": SubmissionState.DRAFT}],
)
def test_baselines_and_drafts_do_not_compete(submission: Submission, reviewer: User, fields: dict) -> None:
    make_submission(make_team(reviewer), submission.track, **fields)
    assert Conflicts(reviewer).about(submission) == ""


def test_competing_in_another_track_is_no_conflict(submission: Submission, reviewer: User) -> None:
    make_submission(make_team(reviewer), make_track(BEST_ANLS_AT_BUDGET), state=SubmissionState.SUBMITTED)
    assert list(awaiting_review(reviewer)) == [submission]


def test_who_organizes_other_tracks_alone_decides_nothing(submission: Submission, reviewer: User) -> None:
    make_track_organizer(reviewer)
    assert "don't organize" in rejected(submission, User.objects.get(pk=reviewer.pk))
    submission.track.organizers.add(reviewer)
    assert Conflicts(reviewer).about(submission) == ""


def test_all_that_speaks_against_a_person_is_read_once(
    submission: Submission, reviewer: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_submission(make_team(reviewer), make_track(BEST_ANLS_AT_BUDGET), state=SubmissionState.SUBMITTED)
    conflicts = Conflicts(User.objects.get(pk=reviewer.pk))
    # Teams and tokens, the tracks where they compete, whether they organize single tracks, and recusals.
    with django_assert_num_queries(4):
        assert conflicts.about(submission) == ""
    with django_assert_num_queries(1):
        assert list(conflicts.exclude_from(Submission.objects.filter(pk=submission.pk))) == [submission]


def test_the_review_page_shows_the_reason_and_nothing_of_the_proof(
    client, submission: Submission, reviewer: User
) -> None:
    make_submission(make_team(reviewer), submission.track, state=SubmissionState.SUBMITTED)
    client.force_login(reviewer)
    page = client.get(reverse("reviews:desk", args=[submission.pk]))
    assert page.status_code == 403
    assert "Your team competes in this track." in page.text
    assert "proof.md" not in page.text
    assert client.get(reverse("reviews:proof", args=[submission.pk])).status_code == 404
