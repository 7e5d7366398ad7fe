"""Proofs in the administration: they are found, counted, supervised and decided on there as at the desk."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.template.defaultfilters import date
from django.urls import reverse
from django.utils import timezone

from docvqa_site.mail.models import OutgoingMail
from docvqa_site.reviews.assignments import assign
from docvqa_site.reviews.deadlines import default_due
from docvqa_site.reviews.drafts import Draft
from docvqa_site.reviews.models import Decision, ProofReview, Recusal
from docvqa_site.reviews.recusals import recuse
from docvqa_site.reviews.services import save_draft
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Membership
from tests.docvqa_site.factories import (
    change_results,
    make_organizer,
    make_reviewer,
    make_upload,
    make_user,
    revise_proof,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject
from tests.docvqa_site.reviews.test_desk import ACCEPT

pytestmark = pytest.mark.django_db

LIST = "/admin/reviews/proof/"


@pytest.fixture
def reviewer(client):
    reviewer = make_reviewer(name="Rita Review")
    client.force_login(reviewer)
    return reviewer


def address(submission):
    return reverse("admin:reviews_proof_change", args=[submission.pk])


def test_the_index_says_how_many_wait_and_leads_to_them(client, submission, reviewer):
    ask(scored_submission(), make_reviewer())
    page = client.get("/admin/").text
    assert "1 privacy proof waits for reviewers" in page
    Submission.objects.update(state=SubmissionState.WITHDRAWN)
    assert "for reviewers</a>" not in client.get("/admin/").text
    Submission.objects.update(state=SubmissionState.SUBMITTED)
    waiting = client.get(LIST + "?state=reviewers").text
    assert submission.title in waiting
    assert "Open the desk" in waiting
    assert reverse("reviews:desk", args=[submission.pk]) in waiting
    assert "1 privacy proof" in waiting


def test_a_row_has_versions_state_age_day_people_and_how_many_decided(client, submission, reviewer):
    assign(submission, reviewer, default_due(), actor=reviewer)
    reject(submission, make_reviewer(), "No composition.")
    page = client.get(LIST).text
    for text in ("waits for reviewers", "Rita Review", "hidden until you decide", f"{default_due():%b}"):
        assert text in page
    for text in ("No composition.", "(2 required)"):
        assert text not in page + client.get(address(submission)).text
    client.force_login(make_organizer("organize"))
    assert "1 (2 required)" in client.get(LIST).text


def test_lists_are_narrowed_by_assignment_and_found_by_the_reviewer(client, submission, reviewer):
    other, free = scored_submission(title="Of another"), scored_submission(title="Free")
    assign(submission, reviewer, default_due(), actor=reviewer)
    assign(other, somebody := make_reviewer(name="Sven Seer"), default_due(), actor=somebody)
    # Each proof needs two reviewers.
    for one in (submission, other):
        assign(one, second := make_reviewer(), default_due(), actor=second)
    ProofReview.objects.filter(submission=other).update(due=timezone.now().date() - timedelta(days=1))
    save_draft(free, Draft(), actor=make_reviewer(name="Dora Drafts"))
    titles = {submission.title, other.title, free.title}
    for query, expected in (
        ("assignment=mine", submission),
        ("assignment=few", free),
        ("assignment=overdue", other),
        ("q=seer", other),
    ):
        page = client.get(f"{LIST}?{query}").text
        assert [title for title in titles if f">{title}</a>" in page] == [expected.title]
    # Nobody sees a draft.
    assert "0 privacy proofs" in client.get(f"{LIST}?q=dora").text


def test_a_rejected_proof_is_no_longer_due(client, submission, reviewer):
    assign(submission, reviewer, default_due(), actor=reviewer)
    for _ in range(2):
        reject(submission, make_reviewer())
    page = client.get(LIST).text
    assert f"{default_due():%b}. {default_due().day}" not in page
    assert '<td class="field-assignees">–</td>' in page
    page = client.get(address(submission)).text
    assert "no decision due" in page
    assert "<dd>rejected: No composition over rounds.</dd>" in page
    assert reverse("reviews:assign", args=[submission.pk]) not in page


def test_the_list_of_decisions_is_named_after_them_and_follows_that_of_proofs(client, submission, reviewer):
    accept(submission, reviewer)
    index = client.get("/admin/reviews/").text
    assert index.index(">Privacy proofs</a>") < index.index(">Proof decisions</a>")
    page = client.get("/admin/reviews/proofreview/").text
    assert "<h1>Each reviewer&#x27;s latest decision</h1>" in page


def test_the_list_of_decisions_says_how_far_each_reviewer_is(client, submission, reviewer):
    assigned, aside = make_reviewer(name="Asta Assigned"), make_reviewer(name="Carl Conflict")
    assign(submission, assigned, default_due(), actor=assigned)
    save_draft(submission, Draft(), actor=aside)
    recuse(submission, Recusal.Why.CONFLICT, actor=aside)
    save_draft(submission, Draft(), actor=make_reviewer(name="Dora Drafts"))
    accept(submission, reviewer)
    listed = "/admin/reviews/proofreview/"
    page = client.get(listed).text
    for text in (">assigned</td>", ">stepped aside: conflict</td>", ">accepted</td>"):
        assert page.count(text) == 1
    assert "Dora Drafts" not in page.partition("changelist-filter")[0]
    client.force_login(make_organizer("organize", "view_proofreview"))
    assert client.get(listed).text.count(">drafting</td>") == 1


def test_a_decision_made_there_is_the_one_of_the_desk(client, submission, reviewer):
    change_results(submission.runs.get(), checks=[{"id": "record.budget", "status": "passed"}])
    page = client.get(address(submission))
    assert "Are the noise" in page.text
    # The questions are about what the page shows.
    assert "Recorded facts" in page.text
    assert "Runs, as recomputed by the evaluator" in page.text
    assert "/docs/roles/reviewer/" in page.text
    assert "Only there are drafts saved" in page.text
    assert "(optional)" not in page.text
    assert 'name="change_reason"' not in page.text
    page = client.post(address(submission), {**ACCEPT, "version": "1", "noise": ""})
    assert page.status_code == 422
    assert "Your decision was not saved. 1 entry is missing or wrong." in page.text
    assert '<li><a href="#item-noise">Are the noise' in page.text
    assert page.text.count('id="item-noise"') == 1
    assert ProofReview.objects.get().decision == Decision.PENDING
    assert client.post(address(submission), {**ACCEPT, "version": "1"}).url == LIST
    assert ProofReview.objects.get().decision == Decision.ACCEPTED
    assert "Under review: proof accepted by 1 of 2 reviewers." in client.get(address(submission)).text


def test_others_decisions_are_read_once_the_verdict_is_final(client, submission, reviewer):
    for _ in range(2):
        assert "accepted the proof" not in client.get(address(submission)).text
        accept(submission, make_reviewer())
    assert "accepted the proof" in client.get(address(submission)).text
    assert submission.title in client.get("/admin/reviews/proofreview/").text


def test_an_organizer_who_does_not_review_reads_everything_and_decides_nothing(client, submission):
    client.force_login(make_organizer("organize"))
    reject(submission, make_reviewer(), "No composition.")
    page = client.get(address(submission)).text
    assert "No composition." in page
    assert 'name="decision"' not in page
    assert client.post(address(submission), ACCEPT).status_code == 403
    assert "1 privacy proof waits" in client.get("/admin/").text
    # The desk is for reviewers.
    assert "Open the desk" not in page + client.get(LIST).text
    desk = reverse("organizers:desk")
    assert f'href="{desk}"' in client.get(reverse("reviews:assign", args=[submission.pk])).text


def test_the_questions_come_before_the_decision(client, submission, reviewer):
    page = client.get(address(submission)).text
    assert page.index('name="code"') < page.index('name="reason"') < page.index('value="accepted"')


def test_a_member_of_the_team_and_others_find_nothing(client, submission, reviewer):
    Membership.objects.create(team=submission.team, user=reviewer)
    assert submission.title not in client.get(LIST).text
    desk = client.get(address(submission), follow=True)
    assert desk.redirect_chain[0][0] == reverse("reviews:desk", args=[submission.pk])
    assert desk.status_code == 403
    assert client.get(LIST + "x/change/").status_code == 404
    client.force_login(make_organizer("organize"))
    unpublished = scored_submission(published_at=None)
    assert client.get(address(unpublished)).status_code == 404
    client.force_login(make_user(is_staff=True))
    assert client.get(LIST).status_code == 403
    assert "wait for reviewers" not in client.get("/admin/").text
    assert client.get(LIST + "add/").status_code == 403


def test_whoever_reported_a_conflict_reads_at_the_desk_why_the_proof_is_closed(client, submission, reviewer):
    recuse(submission, Recusal.Why.CONFLICT, "", actor=reviewer)
    page = client.get(address(submission), follow=True)
    assert page.status_code == 403
    assert "You have declared a conflict of interest" in page.text


def test_the_version_under_review_has_the_time_when_it_was_sent(client, submission, reviewer):
    first, sent = timezone.now() - timedelta(days=9), timezone.now() - timedelta(days=2)
    Submission.objects.update(submitted_at=first, published_at=first)
    # A proof is uploaded before its submission is sent.
    submission.artifacts.update(created_at=first - timedelta(days=1))
    assert "9\xa0days ago" in client.get(LIST).text
    assert "9\xa0days ago" in client.get(address(submission)).text
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    submission.artifacts.filter(version=2).update(created_at=sent)
    for page in (client.get(LIST), client.get(address(submission))):
        assert "2\xa0days ago" in page.text
    assert f">{date(sent, 'M j, Y, H:i')} UTC</time>)" in client.get("/reviews/").text


def test_the_list_takes_as_many_queries_for_many_as_for_one(
    client, submission, reviewer, django_assert_max_num_queries
):
    accept(submission, make_reviewer())
    with django_assert_max_num_queries(14) as one:
        client.get(LIST)
    for _ in range(4):
        accept(scored_submission(), make_reviewer())
    with django_assert_max_num_queries(len(one)):
        client.get(LIST)


def test_delivered_emails_do_not_say_who_reviews_a_proof_that_one_may_still_judge(
    client, submission, reviewer, settings
):
    settings.EMAIL_BACKEND = "docvqa_site.mail.backend.OutboxBackend"
    assign(submission, reviewer, default_due(), actor=make_organizer("organize"))
    # Whatever its subject says.
    OutgoingMail.objects.update(subject="please review", delivered_at=timezone.now())
    OutgoingMail.objects.create(subject="Password changed", recipients=[], delivered_at=timezone.now())
    client.force_login(make_user(is_staff=True, is_superuser=True))
    page = client.get(reverse("admin:mail_outgoingmail_changelist")).text
    assert "Password changed" in page
    assert "please review" not in page
    ProofReview.objects.all().delete()
    assert "please review" in client.get(reverse("admin:mail_outgoingmail_changelist")).text
