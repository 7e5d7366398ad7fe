"""Reviewers who step aside, and who reads what others decided: blindness ends with the verdict."""

import csv
import io

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse

from docvqa_site.audit.models import AuditEntry
from docvqa_site.reviews.appeals import appeal
from docvqa_site.reviews.assignments import assign
from docvqa_site.reviews.deadlines import default_due
from docvqa_site.reviews.eligibility import eligible_reviewers
from docvqa_site.reviews.models import ProofReview, Recusal
from docvqa_site.reviews.queue import Part, queue_of
from docvqa_site.reviews.records import HIDDEN
from docvqa_site.reviews.recusals import recuse
from docvqa_site.reviews.selectors import awaiting_review, readable_proofs, sees_decisions, verdict_on
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_reviewer,
    make_upload,
    make_user,
    revise_proof,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject, reject_for_good

pytestmark = pytest.mark.django_db

Why = Recusal.Why


@pytest.fixture
def reviewer():
    return make_reviewer(name="Rita Review")


def address(name, submission):
    return reverse(f"reviews:{name}", args=[submission.pk])


def parts(reviewer):
    return {entry.submission: section.part for section in queue_of(reviewer) for entry in section.entries}


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        (Why.TIME, "Rita Review doesn't have time to review the privacy proof of “"),
        (Why.FIELD, "Rita Review isn't familiar with the field and won't review the privacy proof of “"),
    ],
)
def test_who_declines_frees_the_assignment_and_the_organizers_read_why(
    client, submission, reviewer, why, sentence, django_capture_on_commit_callbacks
):
    organizer = make_organizer("organize")
    make_reviewer(), make_reviewer()
    assign(submission, reviewer, default_due(), actor=organizer)
    client.force_login(reviewer)
    assert "I can't review this proof" in client.get(address("desk", submission)).text
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(address("decline", submission), {"why": why, "text": "Until spring."})
    assert answer.url == "/reviews/"
    (message,) = mail.outbox
    assert message.to == [organizer.email]
    assert sentence in message.body
    assert "Their note: Until spring." in message.body
    assert "2 reviewers must accept it" not in message.body
    review = ProofReview.objects.get()
    assert (review.assigned_at, review.due) == (None, None)
    assert reviewer not in eligible_reviewers(submission)
    assert list(awaiting_review(reviewer)) == []
    assert parts(reviewer) == {submission: Part.WAITING_FOR_REVIEWERS}
    assert AuditEntry.objects.get(action="proof_review.recused").details["why"] == why
    page = client.get(address("desk", submission)).text
    assert "You declined this review on" in page
    assert "I can't review this proof" not in page
    # To decide, they take it first.
    assert 'name="decision"' not in page
    assert "Take this review</button>" in page
    with pytest.raises(ValidationError, match="You declined this review"):
        accept(submission, reviewer)
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(address("take", submission))
    (message,) = mail.outbox
    assert message.to == [organizer.email]
    assert "has taken it after all" in message.body
    assert 'name="decision"' in client.get(address("desk", submission)).text
    assert list(awaiting_review(reviewer)) == [submission]
    assert "You declined" not in client.get(address("desk", submission)).text


def test_a_withdrawn_decision_is_reported_and_marked(
    client, submission, reviewer, django_capture_on_commit_callbacks
):
    organizer = make_organizer("organize", "review_proofs")
    accept(submission, reviewer)
    with django_capture_on_commit_callbacks(execute=True):
        recuse(submission, Why.CONFLICT, actor=reviewer)
    sent = {message.to[0]: message.body for message in mail.outbox}
    assert sent.keys() == {organizer.email, submission.created_by.email}
    assert (
        "Their decision has been withdrawn. If you were asked for another reviewer" in sent[organizer.email]
    )
    # An organizer may still decide on the proof.
    assert "accepted" not in sent[organizer.email]
    assert "so their decision (“accepted”) on the privacy proof" in sent[submission.created_by.email]
    assert "proof accepted by 0 of 2 reviewers" in sent[submission.created_by.email]
    assert "Rita" not in sent[submission.created_by.email]
    client.force_login(submission.created_by)
    page = client.get(address("team", submission)).text
    assert "accepted the proof (decision withdrawn)" in page
    assert "withdrew the decision" in page
    assert page.index("accepted by 1 of 2 reviewers") < page.rindex("accepted by 0 of 2 reviewers")


def test_organizers_read_that_the_proof_needs_another_reviewer_again(
    submission, reviewer, django_capture_on_commit_callbacks
):
    organizer = make_organizer("organize")
    accept(submission, reviewer)
    accept(submission, make_reviewer())
    with django_capture_on_commit_callbacks(execute=True):
        recuse(submission, Why.CONFLICT, actor=reviewer)
    body = next(message.body for message in mail.outbox if message.to == [organizer.email])
    assert "status has changed from “proof accepted” to “under review”" in body
    assert "Nobody else can review this proof" in body


def test_organizers_read_that_too_few_are_left(submission, reviewer, django_capture_on_commit_callbacks):
    organizer = make_organizer("organize")
    make_reviewer()
    with django_capture_on_commit_callbacks(execute=True):
        recuse(submission, Why.CONFLICT, actor=reviewer)
    body = next(message.body for message in mail.outbox if message.to == [organizer.email])
    assert "2 reviewers must accept it, but only 1 can. Give somebody else permission" in body
    assert "Their note" not in body


def test_who_has_decided_reads_the_effect_of_a_conflict_and_confirms_it(client, submission, reviewer):
    accept(submission, make_reviewer())
    accept(submission, reviewer)
    client.force_login(reviewer)
    page = client.get(address("desk", submission)).text
    assert "Your decision, “accepted”, will be withdrawn" in page
    assert "If you coordinate the review" not in page
    assert "The proof will no longer count as accepted." in page
    page = client.post(address("decline", submission), {"why": Why.CONFLICT}, follow=True).text
    assert "Confirm that your decision will be withdrawn." in page
    assert not Recusal.objects.exists()
    given = {"why": Why.CONFLICT, "withdraws": "on"}
    page = client.post(address("decline", submission), given, follow=True).text
    assert "Your decision has been withdrawn, and the team notified." in page
    assert verdict_on(submission).accepted == 1
    assert Recusal.objects.exists()


def test_an_organizer_lifts_a_mistaken_conflict(
    client, submission, reviewer, django_capture_on_commit_callbacks
):
    accept(submission, reviewer)
    recuse(submission, Why.CONFLICT, actor=reviewer)
    organizer, recusal = make_organizer("organize"), Recusal.objects.get()
    for other in (reviewer, make_reviewer()):
        client.force_login(other)
        assert client.post(address("assign", submission), {"lift": recusal.pk}).status_code == 403
    client.force_login(organizer)
    assert "Let Rita Review review it again" in client.get(address("assign", submission)).text
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        page = client.post(address("assign", submission), {"lift": recusal.pk}, follow=True).text
    assert "Rita Review can review the proof again." in page
    assert client.post(address("assign", submission), {"lift": recusal.pk}).status_code == 302
    sent = {message.to[0]: message.body for message in mail.outbox}
    team = submission.created_by
    assert sent.keys() == {reviewer.email, team.email}
    assert "The organizers have let Reviewer 1 review the privacy proof of" in sent[team.email]
    assert AuditEntry.objects.get(action="proof_review.recusal_lifted").actor == organizer
    assert list(awaiting_review(reviewer)) == [submission]
    client.force_login(reviewer)
    desk = client.get(address("desk", submission)).text
    assert "16 of 16 answered" in desk
    assert "Your withdrawn decision on version 1: accepted" in desk
    assert "It no longer counts" in desk
    client.force_login(team)
    history = client.get(address("team", submission)).text
    readmitted = "<strong>The organizers</strong> let Reviewer 1 review the proof again"
    assert history.index("withdrew the decision") < history.index(readmitted)


def test_coordination_cannot_be_lifted(client, submission, reviewer):
    recuse(submission, Why.COORDINATION, actor=reviewer)
    client.force_login(make_organizer("organize"))
    assert 'name="lift"' not in client.get(address("assign", submission)).text
    page = client.post(address("assign", submission), {"lift": Recusal.objects.get().pk}, follow=True).text
    assert "can read all decisions" in page
    assert Recusal.objects.exists()


def test_a_conflict_hides_the_proof_and_takes_a_decision_back(client, submission, reviewer):
    accept(submission, reviewer)
    recuse(submission, Why.CONFLICT, actor=reviewer)
    assert verdict_on(submission).accepted == 0
    assert parts(reviewer) == {}
    assert not readable_proofs(reviewer).exists()
    client.force_login(reviewer)
    assert f"reported a conflict of interest: “{submission}”" in client.get(reverse("reviews:queue")).text
    for name in ("proof", "desk"):
        page = client.get(address(name, submission))
        assert (page.status_code, "declared a conflict" in page.text) == (403, True)
        assert "Only the organizers can undo" in page.text
    with pytest.raises(PermissionDenied):
        accept(submission, reviewer)


@pytest.mark.parametrize(
    ("permissions", "is_superuser"),
    [(["review_proofs"], False), (["review_proofs", "view_submission"], False), ([], True)],
)
def test_a_conflict_hides_the_proof_and_the_code_whatever_else_one_may_do(
    client, submission, permissions, is_superuser
):
    person = make_organizer(*permissions, is_superuser=is_superuser)
    code = make_artifact(submission.runs.get(), ArtifactKind.SETTINGS, b"a: 1", "settings.yaml")
    places = [address(name, submission) for name in ("proof", "proof_file", "proof_changes")]
    places.append(reverse("reviews:code_file", args=[submission.pk, code.pk]))
    client.force_login(person)
    assert 404 not in {client.get(place).status_code for place in places}
    recuse(submission, Why.CONFLICT, actor=person)
    assert [client.get(place).status_code for place in places] == [403, 404, 404, 404]


def test_a_member_reads_the_proof_of_the_team_despite_an_earlier_conflict(client, submission, reviewer):
    recuse(submission, Why.CONFLICT, actor=reviewer)
    Membership.objects.create(team=submission.team, user=reviewer)
    client.force_login(reviewer)
    assert client.get(address("proof", submission)).status_code == 200


def test_who_coordinates_reads_everything_and_decides_nothing(client, submission, reviewer):
    reject(submission, make_reviewer(), "No composition.")
    client.force_login(reviewer)
    assert "No composition." not in client.get(address("desk", submission)).text
    client.post(address("decline", submission), {"why": Why.COORDINATION})
    page = client.get(address("desk", submission)).text
    assert "No composition." in page
    assert 'name="decision"' not in page
    assert client.post(address("desk", submission), {"decision": "accepted"}).status_code == 403
    with pytest.raises(PermissionDenied, match="coordinating"):
        accept(submission, reviewer)
    assert "No composition." in client.get(reverse("admin:reviews_proof_change", args=[submission.pk])).text


def test_who_has_decided_coordinates_nothing(client, submission, reviewer):
    client.force_login(reviewer)
    assert 'value="coordination"' in client.get(address("desk", submission)).text
    accept(submission, reviewer)
    page = client.get(address("desk", submission)).text
    assert 'value="coordination"' not in page
    assert 'value="conflict"' in page
    with pytest.raises(ValidationError):
        recuse(submission, Why.COORDINATION, actor=reviewer)


def test_participants_step_aside_from_nothing(client, submission):
    for user in (make_user(), submission.created_by):
        client.force_login(user)
        assert client.post(address("decline", submission), {"why": Why.CONFLICT}).status_code == 403
    assert not Recusal.objects.exists()


def test_blindness_ends_with_the_verdict_and_begins_again_with_an_appeal(submission, reviewer):
    accept(submission, make_reviewer())
    assert not sees_decisions(submission, reviewer)
    accept(submission, make_reviewer())
    assert sees_decisions(submission, reviewer)
    rejected = scored_submission()
    reject_for_good(rejected)
    assert sees_decisions(rejected, reviewer)
    appeal(rejected, "Section 3 has it.", author=rejected.created_by)
    assert not sees_decisions(rejected, reviewer)


class TestAuditLog:
    """Whoever may still have to decide doesn't find there either what others decided, or that they did."""

    LISTED = "/admin/audit/auditentry/"

    def shown(self, client, person, submission):
        """What of the only review's decisions a person finds: on the list, by searching, on pages and in the export."""
        client.force_login(person)
        found = client.get(self.LISTED).text + client.get(self.LISTED, {"q": submission.title}).text
        found += client.get(self.LISTED, {"action": "proof_review.rejected"}).text
        review = ProofReview.objects.get(reviewer__name="Rita Review")
        found += client.get(f"/admin/reviews/proofreview/{review.pk}/history/").text
        for entry in AuditEntry.objects.filter(object_type="reviews.proofreview", object_id=str(review.pk)):
            found += client.get(f"{self.LISTED}{entry.pk}/change/").text
        export = client.get("/organize/exports/audit.csv").getvalue().decode()
        secrets = (
            "No composition over rounds.",
            "rejected a proof",
            "requested changes",
            "State the sampling.",
        )
        assert ("proof_review.rejected" in export) == any(secret in found for secret in secrets)
        return [secret for secret in secrets if secret in found + export]

    @pytest.fixture
    def judge(self, submission, reviewer):
        """A superuser who hasn't decided on a proof that was revised, and then rejected."""
        ask(submission, reviewer)
        with transaction.atomic():
            revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
        reject(submission, reviewer)
        return make_user(is_staff=True, is_superuser=True)

    def test_it_shows_them_to_those_who_have_decided(self, client, submission, judge):
        assert self.shown(client, judge, submission) == []
        assert "aren&#x27;t listed" in client.get(self.LISTED).text
        accept(submission, judge)
        assert len(self.shown(client, judge, submission)) == 4
        assert "aren&#x27;t listed" not in client.get(self.LISTED).text

    def test_it_hides_them_again_from_those_with_a_conflict(self, client, submission, judge):
        accept(submission, judge)
        recuse(submission, Why.CONFLICT, actor=judge)
        assert self.shown(client, judge, submission) == []

    def test_it_shows_them_to_organizers_who_do_not_review(self, client, submission, judge):
        seen = ("organize", "view_auditentry", "view_proofreview", "view_submission")
        assert len(self.shown(client, make_organizer(*seen), submission)) == 4

    def test_it_takes_a_few_queries_more_however_many_are_hidden(
        self, client, submission, judge, django_assert_max_num_queries
    ):
        client.force_login(judge)
        with django_assert_max_num_queries(21) as few:
            client.get(self.LISTED)
        for _ in range(4):
            reject(scored_submission(), make_reviewer())
        with django_assert_max_num_queries(len(few)):
            client.get(self.LISTED)


def test_an_export_has_every_decision_that_was_made(client, submission):
    organizer = make_organizer("organize", "view_proofreview", "review_proofs")
    client.force_login(organizer)
    first, second = make_reviewer(), make_reviewer()
    ask(submission, first, "State the sampling.")
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better", "proof.md"), submission.created_by)

    def rows():
        text = client.get("/organize/exports/reviews.csv").getvalue().decode()
        return [(row["version"], row["decision"], row["counts"]) for row in csv.DictReader(io.StringIO(text))]

    accept(submission, first)
    assert rows() == [("", HIDDEN, "")]
    accept(submission, second)
    assert rows() == [
        ("1", "changes_requested", "False"),
        ("2", "accepted", "True"),
        ("2", "accepted", "True"),
    ]
