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
from docvqa_site.boards.boards import stored_boards
from docvqa_site.boards.ordering import ranks_of
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.notifications.models import Notification
from docvqa_site.reviews import services
from docvqa_site.reviews.checklist import CHECKLIST, Answer
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME
from docvqa_site.reviews.drafts import Draft, EarlierAnswer, draft_of
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.selectors import awaiting_review, verdict_on
from docvqa_site.reviews.services import let_rejections_stand, save_draft
from docvqa_site.reviews.verdict import AWAITS_REVIEW, ResultStatus
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.services import copy_to_draft, withdraw
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_organizer,
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
from tests.docvqa_site.submissions.drafts import fill
from tests.docvqa_site.submissions.submitting import submit

pytestmark = pytest.mark.django_db

ALL_YES = {item.key: Answer.YES for item in CHECKLIST}
# As the desk posts it.
REJECT = {
    "decision": "rejected",
    "reason": "No composition.",
    "no_conflict": "on",
    "composition": "no",
    "composition_note": "It isn't proved.",
}


decide = partial(
    services.decide,
    declares_no_conflict=True,
    confirms_contradiction=True,
    change_reason="I read it again.",
)


@pytest.fixture
def submission():
    return scored_submission()


@pytest.fixture
def reviewer():
    return make_reviewer()


def accept(submission, reviewer, reason=""):
    return decide(submission, Decision.ACCEPTED, reason, ALL_YES, actor=reviewer)


def reject(submission, reviewer, reason="No composition over rounds.", notes=None):
    return decide(submission, Decision.REJECTED, reason, {}, actor=reviewer, notes=notes or {})


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
    assert verdict_on(submission).reason == "proof rejected: No composition over rounds."


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
    (message,) = (one for one in mail.outbox if one.to == [submission.created_by.email])
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
    with pytest.raises(ValidationError) as caught:
        decide(submission, Decision.ACCEPTED, "", ALL_YES, actor=reviewer, change_reason=" ")
    assert list(caught.value.message_dict) == ["change_reason"]
    decide(
        submission,
        Decision.ACCEPTED,
        "",
        ALL_YES,
        actor=reviewer,
        change_reason="The new section 3 covers it.",
        changes_due=timezone.now().date() + timedelta(days=3),
    )
    entries = AuditEntry.objects.filter(object_type="reviews.proofreview").order_by("id")
    assert [(entry.action, entry.actor, entry.details["reason"]) for entry in entries] == [
        ("proof_review.rejected", reviewer, "No composition over rounds."),
        ("proof_review.accepted", reviewer, ""),
    ]
    changed = entries[1].details
    assert (changed["change_reason"], changed["changes_due"]) == ("The new section 3 covers it.", None)


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
    assert list(caught.value.message_dict) == ["noise_note"]
    accepted = partial(decide, submission, Decision.ACCEPTED)
    with pytest.raises(ValidationError) as caught:
        accepted("", answers, actor=reviewer, notes={"noise": "Half precision."})
    assert caught.value.message_dict == {
        "reason": ["Explain to the team why you accept the proof despite the “no”."]
    }
    review = accepted("It is minor.", answers, actor=reviewer, notes={"noise": "Half precision."})
    assert review.notes == {"noise": "Half precision."}


@pytest.mark.parametrize(
    ("decision", "noise", "question"),
    [
        (Decision.ACCEPTED, Answer.NO, "You answered “no” to 1 question: Are the noise's distribution"),
        (Decision.REJECTED, Answer.NOT_APPLICABLE, "You answered “no” to no question, so none names"),
        (Decision.REJECTED, None, "You answered “no” to no question, so none names"),
        (Decision.CHANGES_REQUESTED, None, "You answered “no” to no question, so none names"),
        (Decision.CHANGES_REQUESTED, Answer.NO, ""),
        (Decision.REJECTED, Answer.NO, ""),
        (Decision.ACCEPTED, Answer.YES, ""),
    ],
)
def test_a_decision_against_the_answers_must_be_confirmed(submission, reviewer, decision, noise, question):
    answers = {**ALL_YES, "noise": noise} if noise else {}
    due = timezone.now().date() + timedelta(days=14)
    given = partial(
        decide,
        submission,
        decision,
        "Why.",
        answers,
        notes={"noise": "It is."},
        changes_due=due,
        actor=reviewer,
    )
    if question:
        with pytest.raises(ValidationError) as caught:
            given(confirms_contradiction=False)
        assert caught.value.message_dict["confirms_contradiction"][0].startswith(question)
        assert not ProofReview.objects.exists()
    assert given(confirms_contradiction=bool(question)).decision == decision


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


@pytest.fixture
def ranked():
    """A submission with a run that has a rank."""
    submission = scored_submission()
    change_results(submission.runs.get(), epsilon=0.9)
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    return submission


def revise(submission, content=b"better"):
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, content), submission.created_by)


def rank_of(submission):
    run = submission.runs.get()
    return ranks_of(submission.track, run.budget, [run.pk]).get(run.pk)


class TestRevisionOfARejectedProof:
    def test_the_rank_is_withheld_until_a_reviewer_accepts_it(self, client, ranked):
        reject_for_good(ranked, make_reviewer(), make_reviewer())
        revise(ranked)
        revise(ranked, b"a space more ")
        assert rank_of(ranked) is None
        verdict = verdict_on(Submission.objects.get(pk=ranked.pk))
        assert (verdict.status, verdict.reason) == (ResultStatus.PROVISIONAL, AWAITS_REVIEW)
        (row,) = list(stored_boards(ranked.track)[0])
        assert (row.rank, row.reason) == (None, AWAITS_REVIEW)
        assert "the revised proof awaits review" in client.get(ranked.get_absolute_url()).text
        assert ranked in awaiting_review(make_reviewer())
        accept(ranked, make_reviewer())
        assert rank_of(ranked) == 1

    def test_one_that_was_accepted_once_keeps_its_rank_with_the_next_revision(self, ranked):
        reject_for_good(ranked)
        revise(ranked)
        accept(ranked, make_reviewer())
        revise(ranked, b"better still")
        assert rank_of(ranked) == 1

    def test_a_proof_that_keeps_its_rank_keeps_it_when_it_is_revised(self, ranked, reviewer):
        for objection in (ask, reject):
            objection(ranked, reviewer)
            revise(ranked, objection.__name__.encode())
            assert rank_of(ranked) == 1

    def test_submitting_the_run_again_is_no_way_around(self, ranked):
        run = fill(ranked.runs.get())
        reject_for_good(ranked, make_reviewer(), make_reviewer())
        withdraw(ranked, ranked.created_by)
        draft = copy_to_draft(ranked, ranked.created_by)
        submit(draft)
        again = draft.runs.get()
        Run.objects.filter(pk=again.pk).update(
            state=RunState.SCORED, scored_at=timezone.now(), results=run.results
        )
        assert rank_of(draft) is None
        accept(draft, make_reviewer())
        assert rank_of(draft) == 1


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


def test_after_a_revision_a_reviewer_finds_the_answers_and_ticks_again(client, submission, reviewer):
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
    earlier = EarlierAnswer(version=1, answer=Answer.NO, note="Half precision.")
    assert draft_of(review, 2) == Draft(version=2, earlier={"noise": earlier})
    client.force_login(reviewer)
    page = client.get(reverse("reviews:desk", args=[submission.pk])).text
    assert ">note to the team</span>" not in page
    assert page.count("<p>Half precision.</p>") == 2


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
    message = mail.outbox[0]
    assert message.to == [submission.created_by.email]
    assert message.subject.endswith(f"Proof of {submission}: rejection proposed")
    assert "A reviewer proposes to reject the privacy proof" in message.body
    assert message.body.count("No composition over rounds") == 1
    assert "Under review: one reviewer proposes to reject the proof" in message.body
    assert "within 7 days" in message.body
    assert settings.SITE_URL + reverse("reviews:team", args=[submission.pk]) in message.body
    assert reviewer.email not in message.body


def test_the_mail_to_the_team_has_what_the_preview_shows_in_full(
    client, submission, reviewer, django_capture_on_commit_callbacks
):
    client.force_login(reviewer)
    accept(submission, reviewer)
    desk, draft = (reverse(f"reviews:{name}", args=[submission.pk]) for name in ("desk", "draft"))
    given = {**REJECT, "unit_note": "As in the kit.", "change_reason": "Read again."}
    saved = client.post(draft, given, headers={"HX-Request": "true"}).text
    preview = saved[saved.index('class="preview"') : saved.index("Visible to everyone")]
    with django_capture_on_commit_callbacks(execute=True):
        client.post(desk, given)
    *_, body = (one.body for one in mail.outbox if one.to == [submission.created_by.email])
    question = next(item.question for item in CHECKLIST if item.key == "composition")
    assert f"On the question “{question}” (answer: no):\nIt isn't proved." in body
    # Both the form and what everyone sees say when a rejection takes effect.
    effect = "as soon as a second reviewer agrees, or after 7 days if nobody else decides"
    assert effect in saved
    assert client.get(desk).text.count(effect) == 2
    for text in ("No composition.", "Read again.", question, "It isn't proved.", "As in the kit."):
        assert body.count(text) == 1
        assert text.replace("'", "&#x27;") in preview


def test_an_acceptance_does_not_end_a_request_for_changes(submission, django_capture_on_commit_callbacks):
    ask(submission, make_reviewer())
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        accept(submission, make_reviewer())
    body = next(one.body for one in mail.outbox if one.subject.endswith("accepted by a reviewer"))
    assert "Another reviewer still requests changes. Please upload a revised proof." in body


def test_the_subject_gives_the_outcome_only_once_there_is_one(submission, django_capture_on_commit_callbacks):
    rejected = scored_submission()
    with django_capture_on_commit_callbacks(execute=True):
        for proof, one_decides in ((submission, accept), (rejected, reject)):
            one_decides(proof, make_reviewer())
            one_decides(proof, make_reviewer())
    teams = {submission.created_by.email, rejected.created_by.email}
    sent = [message for message in mail.outbox if message.to[0] in teams]
    subjects = [message.subject.rpartition(": ")[2] for message in sent]
    assert subjects == [
        "accepted by a reviewer",
        "accepted by enough reviewers",
        "rejection proposed",
        "rejected",
    ]
    assert "Read the history of the review and reply:" in sent[0].body
    assert "Under review: proof accepted by 1 of 2 reviewers." in sent[0].body
    assert "Proof accepted by 2 reviewers." in sent[1].body


def test_reviewers_who_decided_are_notified_of_the_final_verdict_once(
    submission, reviewer, django_capture_on_commit_callbacks
):
    def subjects():
        return list(Notification.objects.filter(user=reviewer).values_list("subject", flat=True))

    begun = make_reviewer()
    save_draft(submission, Draft(), actor=begun)
    accept(submission, reviewer)
    assert subjects() == []
    second = make_reviewer()
    accept(submission, second)
    assert subjects() == [f"Proof of {submission}: accepted by enough reviewers"]
    assert "Proof accepted by 2 reviewers." in Notification.objects.get(user=reviewer).text
    accept(submission, make_reviewer())
    assert len(subjects()) == 1
    # Who decided last has read it, and who hasn't decided hasn't asked.
    assert not Notification.objects.filter(user__in=[second, begun], subject__contains="accepted").exists()


def test_a_reviewer_is_notified_that_their_rejection_stands(submission, reviewer):
    reject(submission, reviewer)
    let_rejections_stand(timezone.now() + SECOND_OPINION_TIME + timedelta(hours=1))
    assert Notification.objects.get(user=reviewer).subject == f"Proof of {submission}: rejected"


def test_a_rejected_team_reads_every_reason_and_what_it_can_do(
    submission, reviewer, django_capture_on_commit_callbacks
):
    reject(submission, reviewer, "No composition over rounds.", notes={"noise": "It is reused."})
    with django_capture_on_commit_callbacks(execute=True):
        reject(submission, make_reviewer(), "The noise; it repeats.", notes={"noise": "By two rounds."})
    (message,) = mail.outbox[-1:]
    for text in (
        "2 reviewers rejected the privacy proof",
        "Reviewer 1's notes on questions of the checklist:",
        "It is reused.",
        "Reviewer 2's notes on questions of the checklist:",
        "By two rounds.",
        "Reviewer 1: No composition over rounds.\n",
        "Reviewer 2: The noise; it repeats.\n",
        "The result no longer has a rank.",
        "upload a revised proof, which restarts the review, or appeal once",
        reverse("reviews:team", args=[submission.pk]),
    ):
        assert message.body.count(text) == 1
    assert verdict_on(submission).rejections == ("No composition over rounds.", "The noise; it repeats.")


@pytest.mark.parametrize("first", [None, accept, ask])
def test_others_are_asked_when_another_reviewer_is_needed(
    submission, reviewer, first, django_capture_on_commit_callbacks
):
    organizer = make_organizer("organize")
    if first:
        first(submission, make_reviewer())
    undecided = make_reviewer()
    with django_capture_on_commit_callbacks(execute=True):
        reject(submission, reviewer, "No composition over rounds.")
    asked = {message.to[0]: message for message in mail.outbox if "another reviewer" in message.subject}
    assert asked.keys() == {organizer.email, undecided.email}
    assert reverse("reviews:desk", args=[submission.pk]) in asked[undecided.email].body
    assert reverse("reviews:assign", args=[submission.pk]) in asked[organizer.email].body
    # They judge alone.
    assert not any("No composition" in message.body for message in asked.values())
    assert list(awaiting_review(undecided)) == [submission]


@pytest.mark.parametrize("others", [0, 1])
def test_organizers_are_asked_to_add_a_reviewer_if_nobody_is_left(
    client, submission, others, django_capture_on_commit_callbacks
):
    """Who has just decided is asked only if there is no other organizer."""
    accept(submission, make_reviewer())
    organizers = [
        make_organizer("organize", "review_proofs"),
        *(make_organizer("organize") for _ in range(others)),
    ]
    client.force_login(organizers[0])
    with django_capture_on_commit_callbacks(execute=True):
        page = client.post(reverse("reviews:desk", args=[submission.pk]), REJECT, follow=True).text
    assert "another reviewer has been asked" not in page.lower()
    assert "Nobody else can review this proof" in page
    (asked,) = (message for message in mail.outbox if "another reviewer is needed" in message.subject)
    assert asked.to == [organizers[-1].email]
    assert "Give somebody else permission to decide on privacy proofs" in asked.body


def test_a_changed_decision_is_not_taken_for_another_reviewers(
    submission, reviewer, django_capture_on_commit_callbacks
):
    accept(submission, reviewer)
    for decision, subject, text in (
        (Decision.ACCEPTED, "accepted by a reviewer (decision updated)", "which is still “accepted”"),
        (Decision.REJECTED, "rejection proposed (decision changed)", "from “accepted” to “rejected”"),
    ):
        with django_capture_on_commit_callbacks(execute=True):
            decide(submission, decision, "Clearer.", ALL_YES, actor=reviewer, change_reason="Read again.")
        sent = next(one for one in mail.outbox[::-1] if "decision" in one.subject)
        assert subject in sent.subject
        assert "Reviewer 1 " in sent.body
        assert text in sent.body


def test_the_reviewer_reads_that_one_rejection_is_a_proposal(client, submission, reviewer):
    client.force_login(reviewer)
    page = client.post(reverse("reviews:desk", args=[submission.pk]), REJECT, follow=True).text
    day = timezone.now() + SECOND_OPINION_TIME
    assert "is recorded: rejected. This is a proposal: the run loses its rank once a second" in page
    assert f"or on {day:%b} {day.day}, {day:%Y} if nobody else decides" in page


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
