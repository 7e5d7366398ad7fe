from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest
from django.conf import settings
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.reviews import services
from docvqa_site.reviews.checklist import CHECKLIST, Answer
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME
from docvqa_site.reviews.drafts import Draft, draft_of
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.selectors import awaiting_review, verdict_on
from docvqa_site.reviews.services import let_rejections_stand
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import RunState, Submission, SubmissionState
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_upload,
    make_user,
    revise_proof,
    scored_submission,
)

pytestmark = pytest.mark.django_db

ALL_YES = {item.key: Answer.YES for item in CHECKLIST}


decide = partial(services.decide, declares_no_conflict=True)


@pytest.fixture
def submission():
    return scored_submission()


@pytest.fixture
def reviewer():
    return make_reviewer()


def accept(submission, reviewer, reason=""):
    return decide(submission, Decision.ACCEPTED, reason, ALL_YES, actor=reviewer)


def reject(submission, reviewer, reason="No composition over rounds."):
    return decide(submission, Decision.REJECTED, reason, {}, actor=reviewer)


def reject_for_good(submission, *reviewers):
    """Reject it, and let the time for a second opinion pass."""
    for reviewer in reviewers or [make_reviewer()]:
        reject(submission, reviewer)
    let_rejections_stand(timezone.now() + SECOND_OPINION_TIME)
    submission.refresh_from_db()


def ask(submission, reviewer, reason="State the sampling.", days=14):
    due = timezone.now().date() + timedelta(days=days)
    return decide(submission, Decision.CHANGES_REQUESTED, reason, {}, actor=reviewer, changes_due=due)


def test_two_acceptances_verify_the_result(submission, reviewer):
    accept(submission, reviewer)
    assert verdict_on(submission).status == ResultStatus.PROVISIONAL
    accept(submission, make_reviewer())
    assert verdict_on(submission).status == ResultStatus.VERIFIED


def test_two_rejections_take_the_rank_with_the_reason(submission, reviewer):
    reject(submission, reviewer)
    assert verdict_on(submission).status == ResultStatus.PROVISIONAL
    assert verdict_on(submission).is_proposal
    reject(submission, make_reviewer())
    assert verdict_on(submission).reason == "proof rejected: No composition over rounds"


def test_one_rejection_takes_the_rank_once_nobody_has_contradicted_it_in_time(
    submission, reviewer, django_capture_on_commit_callbacks
):
    contradicted = scored_submission()
    for one in (submission, contradicted):
        reject(one, reviewer)
    accept(contradicted, make_reviewer())
    now = timezone.now()
    assert let_rejections_stand(now + SECOND_OPINION_TIME - timedelta(minutes=1)) == 0
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert let_rejections_stand(now + SECOND_OPINION_TIME) == 1
    (message,) = mail.outbox
    assert "The result no longer has a rank." in message.body
    submission.refresh_from_db()
    assert verdict_on(submission).status == ResultStatus.REJECTED
    assert submission.proof_rejected
    assert AuditEntry.objects.get(action="proof_review.rejection_stands").actor is None
    accept(submission, make_reviewer())
    submission.refresh_from_db()
    assert verdict_on(submission).is_split
    assert not submission.proof_rejected


def test_a_revised_proof_gets_all_of_the_time_again(submission, reviewer):
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    reject_for_good(submission, reviewer)
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    reject(submission, reviewer)
    submission.refresh_from_db()
    assert verdict_on(submission).is_proposal


def test_one_reviewer_counts_once(submission, reviewer):
    accept(submission, reviewer)
    accept(submission, reviewer, "Read it again.")
    assert ProofReview.objects.count() == 1
    assert verdict_on(submission).status == ResultStatus.PROVISIONAL


def test_accepting_needs_every_answer(submission, reviewer):
    answers = {key: answer for key, answer in ALL_YES.items() if key != "noise"}
    with pytest.raises(ValidationError) as caught:
        decide(submission, Decision.ACCEPTED, "", answers, actor=reviewer)
    assert list(caught.value.message_dict) == ["noise"]
    assert not ProofReview.objects.exists()


def test_rejecting_needs_a_reason_only(submission, reviewer):
    with pytest.raises(ValidationError) as caught:
        reject(submission, reviewer, "  ")
    assert list(caught.value.message_dict) == ["reason"]
    reject(submission, reviewer)


def test_another_decision_needs_a_reason_and_keeps_the_history(submission, reviewer):
    reject(submission, reviewer)
    with pytest.raises(ValidationError):
        accept(submission, reviewer)
    accept(submission, reviewer, "The new section 3 covers it.")
    entries = AuditEntry.objects.filter(object_type="reviews.proofreview").order_by("id")
    assert [(entry.action, entry.actor, entry.details["reason"]) for entry in entries] == [
        ("proof_review.rejected", reviewer, "No composition over rounds."),
        ("proof_review.accepted", reviewer, "The new section 3 covers it."),
    ]


def test_a_no_needs_a_note(submission, reviewer):
    answers = {**ALL_YES, "noise": Answer.NO}
    with pytest.raises(ValidationError) as caught:
        decide(
            submission,
            Decision.REJECTED,
            "No.",
            answers,
            actor=reviewer,
            notes={"noise": "  ", "unit": "fine"},
        )
    assert list(caught.value.message_dict) == ["noise"]
    review = decide(
        submission, Decision.ACCEPTED, "", answers, actor=reviewer, notes={"noise": "Half precision."}
    )
    assert review.notes == {"noise": "Half precision."}


@pytest.mark.parametrize(("decision", "others"), [(Decision.ACCEPTED, []), (Decision.REJECTED, ["reason"])])
def test_no_decision_counts_without_the_word_that_there_is_no_conflict(
    submission, reviewer, decision, others
):
    with pytest.raises(ValidationError) as caught:
        decide(submission, decision, "", ALL_YES, actor=reviewer, declares_no_conflict=False)
    assert sorted(caught.value.message_dict) == sorted(["no_conflict", *others])
    assert not ProofReview.objects.exists()


@pytest.mark.parametrize("days", [0, 91])
def test_changes_are_due_within_reach(submission, reviewer, days):
    with pytest.raises(ValidationError) as caught:
        ask(submission, reviewer, days=days)
    assert list(caught.value.message_dict) == ["changes_due"]


def test_who_asks_for_changes_says_which(submission, reviewer):
    with pytest.raises(ValidationError) as caught:
        ask(submission, reviewer, " ")
    assert list(caught.value.message_dict) == ["reason"]


def test_changes_are_requested_until_the_revised_proof_is_uploaded(submission, reviewer):
    ask(submission, reviewer)
    verdict = verdict_on(submission)
    assert (verdict.status, verdict.asks_changes) == (ResultStatus.PROVISIONAL, True)
    assert list(awaiting_review(make_reviewer())) == []
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    assert not verdict_on(Submission.objects.get(pk=submission.pk)).asks_changes
    assert list(awaiting_review(reviewer)) == [submission]
    assert ProofReview.objects.get().changes_due is None


def test_after_a_revision_a_reviewer_finds_the_answers_and_ticks_again(submission, reviewer):
    decide(
        submission,
        Decision.REJECTED,
        "No.",
        {"noise": Answer.NO},
        actor=reviewer,
        notes={"noise": "Half precision."},
    )
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    review = ProofReview.objects.get()
    assert (review.checklist, review.notes, review.declares_no_conflict) == ({}, {}, False)
    assert draft_of(review) == Draft(answers={"noise": Answer.NO}, notes={"noise": "Half precision."})


def test_only_the_version_that_was_read_is_decided_on(submission, reviewer):
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    with pytest.raises(ValidationError, match="revised proof"):
        decide(submission, Decision.ACCEPTED, "", ALL_YES, actor=reviewer, version=1)
    assert not ProofReview.objects.exists()
    decide(submission, Decision.ACCEPTED, "", ALL_YES, actor=reviewer, version=2)
    assert AuditEntry.objects.get(action="proof_review.accepted").details["version"] == 2


def waits_for_this_connection():
    """Whether another connection waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return cursor.fetchone()


@pytest.mark.django_db(transaction=True)
def test_a_draft_that_saves_itself_during_the_decision_stops_neither(submission, reviewer):
    def decide_and_disconnect():
        with closing(connection):
            return accept(submission, reviewer)

    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            services.save_draft(submission, Draft(), actor=reviewer)
            decision = other.submit(decide_and_disconnect)
            while not decision.done() and not waits_for_this_connection():
                pass
        assert decision.result().decision == Decision.ACCEPTED
    assert verdict_on(submission).accepted == 1


def test_a_third_reviewer_settles_a_disagreement(submission):
    accept(submission, make_reviewer())
    reject(submission, make_reviewer())
    assert verdict_on(submission).is_split
    third = make_reviewer()
    assert list(awaiting_review(third)) == [submission]
    reject(submission, third)
    assert verdict_on(submission).status == ResultStatus.REJECTED


@pytest.mark.parametrize("answers", [{"unknown": "yes"}, {"noise": "maybe"}])
def test_answers_outside_the_checklist_are_rejected(submission, reviewer, answers):
    with pytest.raises(ValidationError):
        decide(submission, Decision.REJECTED, "reason", answers, actor=reviewer)


def test_pending_is_no_decision(submission, reviewer):
    with pytest.raises(ValidationError):
        decide(submission, Decision.PENDING, "reason", ALL_YES, actor=reviewer)


@pytest.mark.parametrize("state", [SubmissionState.DRAFT, SubmissionState.WITHDRAWN])
def test_only_submitted_proofs_are_decided_on(reviewer, state):
    submission = make_submission(track=make_track(BEST_ANLS_AT_BUDGET), state=state)
    with pytest.raises(ValidationError):
        accept(submission, reviewer)


def test_a_member_of_the_team_may_not_review_it(submission, reviewer):
    Membership.objects.create(team=submission.team, user=reviewer)
    with pytest.raises(PermissionDenied, match="submitting team"):
        accept(submission, reviewer)
    assert submission not in awaiting_review(reviewer)


@pytest.mark.parametrize("fields", [{"is_staff": False}, {"is_active": False}])
def test_only_active_staff_with_the_permission_may_review(submission, fields):
    outsider = make_reviewer()
    for name, value in fields.items():
        setattr(outsider, name, value)
    outsider.save()
    with pytest.raises(PermissionDenied):
        accept(submission, outsider)
    with pytest.raises(PermissionDenied):
        accept(submission, make_user(is_staff=True))


def test_the_team_is_notified(submission, reviewer, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        reject(submission, reviewer)
    (message,) = mail.outbox
    assert message.to == [submission.created_by.email]
    assert message.subject.endswith(f"Proof of {submission}: rejection proposed")
    assert "A reviewer proposes to reject the privacy proof" in message.body
    assert message.body.count("No composition over rounds") == 1
    assert "Under review: one reviewer proposes to reject the proof" in message.body
    assert "within 7 days" in message.body
    assert settings.SITE_URL + reverse("reviews:team", args=[submission.pk]) in message.body
    assert reviewer.email not in message.body


def test_the_subject_gives_the_outcome_only_once_there_is_one(submission, django_capture_on_commit_callbacks):
    rejected = scored_submission()
    with django_capture_on_commit_callbacks(execute=True):
        for proof, one_decides in ((submission, accept), (rejected, reject)):
            one_decides(proof, make_reviewer())
            one_decides(proof, make_reviewer())
    subjects = [message.subject.rpartition(": ")[2] for message in mail.outbox]
    assert subjects == ["accepted by a reviewer", "accepted", "rejection proposed", "rejected"]
    assert "Under review: proof accepted by 1 of 2 reviewers." in mail.outbox[0].body
    assert "Verified: proof accepted by 2 reviewers." in mail.outbox[1].body


class TestAwaiting:
    def test_it_lists_what_the_reviewer_has_not_decided(self, submission, reviewer):
        other = scored_submission()
        accept(other, reviewer)
        accept(submission, make_reviewer())
        assert list(awaiting_review(reviewer)) == [submission]

    def test_it_leaves_out_what_other_reviewers_have_settled(self, submission, reviewer):
        for _ in range(2):
            accept(submission, make_reviewer())
        reject_for_good(scored_submission())
        assert list(awaiting_review(reviewer)) == []

    def test_it_leaves_out_what_has_no_score_or_needs_no_proof_or_was_withdrawn(self, reviewer):
        make_run(
            make_submission(track=make_track(BEST_ANLS_AT_BUDGET), state=SubmissionState.SUBMITTED),
            budget=1.0,
            state=RunState.QUEUED,
        )
        make_run(state=RunState.SCORED)
        scored_submission(state=SubmissionState.WITHDRAWN)
        assert list(awaiting_review(reviewer)) == []

    def test_a_submission_with_several_scored_runs_is_listed_once(self, submission, reviewer):
        make_run(submission, budget=4.0, state=RunState.SCORED)
        Membership.objects.create(team=submission.team, user=make_user())
        assert list(awaiting_review(reviewer)) == [submission]

    def test_the_oldest_comes_first(self, submission, reviewer):
        later = scored_submission(team=make_team())
        Submission.objects.filter(pk=later.pk).update(submitted_at=submission.submitted_at.replace(year=2099))
        assert list(awaiting_review(reviewer)) == [submission, later]


def test_a_revised_proof_is_reviewed_from_the_beginning(
    submission, reviewer, django_capture_on_commit_callbacks
):
    reject(submission, reviewer, "No composition over rounds.")
    accept(submission, make_reviewer())
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    mail.outbox.clear()
    with transaction.atomic(), django_capture_on_commit_callbacks(execute=True):
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    submission = Submission.objects.get(pk=submission.pk)
    verdict = verdict_on(submission)
    assert (verdict.status, verdict.reason) == (
        ResultStatus.PROVISIONAL,
        "proof accepted by 0 of 2 reviewers",
    )
    assert list(awaiting_review(reviewer)) == [submission]
    assert {to for message in mail.outbox for to in message.to} >= {reviewer.email}
    reopened = AuditEntry.objects.filter(action="proof_review.reopened")
    assert {entry.details["reason"] for entry in reopened} == {"No composition over rounds.", ""}
