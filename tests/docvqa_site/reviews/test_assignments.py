import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry
from docvqa_site.reviews.assignments import assign
from docvqa_site.reviews.deadlines import default_due
from docvqa_site.reviews.eligibility import eligible_reviewers
from docvqa_site.reviews.models import ProofReview, Recusal
from docvqa_site.reviews.queue import Part, queue_of
from docvqa_site.reviews.recusals import recuse
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_upload,
    make_user,
    revise_proof,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject

pytestmark = pytest.mark.django_db


@pytest.fixture
def submission():
    return scored_submission()


@pytest.fixture
def reviewer():
    return make_reviewer(name="Rita Review", email="rita@example.org")


@pytest.fixture
def organizer():
    organizer = make_user(is_staff=True)
    organizer.user_permissions.add(Permission.objects.get(codename="organize"))
    return organizer


def day(days=10):
    return timezone.now().date() + timedelta(days=days)


def address(submission):
    return reverse("reviews:assign", args=[submission.pk])


def test_a_revised_proof_has_a_new_day(submission, reviewer):
    assign(submission, reviewer, day(2), actor=reviewer)
    accept(submission, reviewer)
    ProofReview.objects.update(due=day(-3))
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    assert ProofReview.objects.get().due == default_due()


def test_a_track_organizer_assigns_from_a_page_whose_links_they_can_open(client, submission, reviewer):
    person = make_user(is_staff=True)
    make_track_organizer(person)
    submission.track.organizers.add(person)
    client.force_login(person)
    page = client.get(address(submission)).text
    links = set(re.findall(r'href="(/(?:admin|organize|reviews)/[^"#]*)', page))
    assert reverse("organizers:desk") in links
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_an_organizer_assigns_a_reviewer_by_a_day(
    client, submission, reviewer, organizer, django_capture_on_commit_callbacks
):
    client.force_login(organizer)
    page = client.get(address(submission)).text
    assert "Rita Review" in page
    assert "Two reviewers must accept the proof." in page
    with django_capture_on_commit_callbacks(execute=True):
        sent = client.post(address(submission), {"reviewer": reviewer.pk, "due": day()})
    assert sent.url == address(submission)
    assert "One is assigned; one more is needed," in client.get(address(submission)).text
    assert [message.to for message in mail.outbox] == [["rita@example.org"]]
    assert reverse("reviews:desk", args=[submission.pk]) in mail.outbox[0].body
    (entry,) = AuditEntry.objects.filter(action="proof_review.assigned")
    assert (entry.actor, entry.details["reviewer"]) == (organizer, reviewer.pk)
    (needed,) = [section for section in queue_of(reviewer) if section.part == Part.NEEDS_ME]
    assert [(entry.reviewers, entry.due) for entry in needed.entries] == [(["Rita Review"], day())]


def test_the_mail_says_who_asks_whose_proof_it_is_and_how_to_decline(
    submission, reviewer, organizer, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        assign(submission, reviewer, day(), actor=organizer)
    (message,) = mail.outbox
    for text in (organizer.name, submission.team.name, "I can't review this proof", "/docs/roles/reviewer/"):
        assert text in message.body


def test_an_assignment_is_moved_and_removed(
    client, submission, reviewer, organizer, django_capture_on_commit_callbacks
):
    review = assign(submission, reviewer, day(), actor=organizer)
    other = make_reviewer(name="Olga Other")
    assign(scored_submission(), other, day(), actor=other)
    client.force_login(organizer)
    page = client.get(address(submission)).text
    assert "Olga Other (1 open assignment)" in page
    # Who is assigned isn't offered again.
    assert "Rita Review (" not in page
    given = {"assigned": review.pk, "due": day(20)}
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(address(submission), given).url == address(submission)
    assert ProofReview.objects.get(pk=review.pk).due == day(20)
    message = mail.outbox[-1]
    assert message.subject.endswith("new due date")
    assert f"from {day():%b %-d, %Y} to {day(20):%b %-d, %Y}" in message.body
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        page = client.post(address(submission), {**given, "remove": "1"}, follow=True).text
    assert "Rita Review is no longer assigned." in page
    assert "Rita Review (0 open assignments)" in page
    assert [message.to for message in mail.outbox] == [[reviewer.email]]
    assert AuditEntry.objects.get(action="proof_review.unassigned").actor == organizer
    assert client.post(address(submission), given, follow=True).text.count("Choose an assigned reviewer") == 1


@pytest.mark.parametrize(("due", "words"), [("", "required"), (day(120), "Choose a date within")])
def test_a_wrong_new_date_is_reported_at_its_field_and_kept(
    client, submission, reviewer, organizer, due, words
):
    other = assign(submission, make_reviewer(), day(), actor=organizer)
    review = assign(submission, reviewer, day(), actor=organizer)
    client.force_login(organizer)
    page = client.post(address(submission), {"assigned": review.pk, "due": due}).text
    assert "<title>Error: " in page
    field = f"assigned_{review.pk}_due"
    summary = page.partition('role="alert" tabindex="-1" autofocus')[2].partition("</div>")[0]
    assert f'<a href="#{field}">Decide by</a>' in summary
    assert words in page.partition(f'id="{field}_error"')[2].partition("</ul>")[0]
    assert f'value="{due}"' in page
    # The other forms of the page are as they were.
    assert page.count("form-errors") == 1
    assert f'id="assigned_{other.pk}_due_error"' not in page
    assert ProofReview.objects.get(pk=review.pk).due == day()


def test_who_has_decided_is_marked_and_keeps_the_assignment(client, submission, reviewer, organizer):
    review = assign(submission, reviewer, day(), actor=organizer)
    accept(submission, reviewer)
    client.force_login(organizer)
    assert "<strong>Rita Review</strong>, has decided" in client.get(address(submission)).text
    page = client.post(address(submission), {"assigned": review.pk, "due": day(), "remove": "1"}, follow=True)
    assert "already decided" in page.text


def test_a_settled_proof_needs_no_other_reviewer(client, submission, reviewer, organizer):
    for _ in range(2):
        accept(submission, make_reviewer())
    client.force_login(organizer)
    page = client.get(address(submission)).text
    assert "The review is complete" in page
    assert "<form class" not in page
    with pytest.raises(ValidationError, match="complete"):
        assign(submission, reviewer, day(), actor=organizer)


def test_a_reviewer_takes_a_proof(client, submission, reviewer):
    client.force_login(reviewer)
    take = reverse("reviews:take", args=[submission.pk])
    assert client.get(take).status_code == 405
    assert client.post(take).url == reverse("reviews:desk", args=[submission.pk])
    assert ProofReview.objects.get().due == day(14)
    assert "Rita Review" in client.get("/reviews/").text


def test_whoever_takes_a_proof_that_one_rejects_decides_before_that_takes_the_rank(
    client, submission, reviewer
):
    reject(submission, make_reviewer())
    client.force_login(reviewer)
    client.post(reverse("reviews:take", args=[submission.pk]))
    assert ProofReview.objects.get(reviewer=reviewer).due == day(7)


def test_who_has_a_conflict_or_has_decided_is_not_offered(submission, reviewer, organizer):
    member = make_reviewer()
    Membership.objects.create(team=submission.team, user=member)
    ask(submission, make_reviewer())
    assert eligible_reviewers(submission) == [reviewer]
    for other in (member, make_user()):
        with pytest.raises(ValidationError, match="another reviewer"):
            assign(submission, other, day(), actor=organizer)
    accept(submission, reviewer)
    with pytest.raises(ValidationError, match="already decided"):
        assign(submission, reviewer, day(), actor=organizer)


def test_where_too_few_can_accept_the_proof_the_page_says_what_to_do(client, submission, reviewer, organizer):
    make_reviewer()
    client.force_login(organizer)
    assert "but two must accept it" not in client.get(address(submission)).text
    recuse(submission, Recusal.Why.CONFLICT, actor=reviewer)
    page = client.get(address(submission)).text
    assert "Only one reviewer can review this proof, but two must accept it" in page
    assert "Ask an organizer of all tracks to invite another reviewer." in page
    # Who has decided counts.
    accept(submission, make_reviewer())
    assert "must accept it" not in client.get(address(submission)).text


@pytest.mark.parametrize("days", [0, 91])
def test_the_day_is_within_reach(client, submission, reviewer, organizer, days):
    client.force_login(organizer)
    page = client.post(address(submission), {"reviewer": reviewer.pk, "due": day(days)})
    assert page.context["form"].errors.keys() == {"due"}
    assert not ProofReview.objects.exists()


def test_only_organizers_without_a_conflict_assign_others(client, submission, reviewer, organizer):
    for user in (make_user(), make_user(is_staff=True), reviewer):
        client.force_login(user)
        assert client.post(address(submission), {"reviewer": reviewer.pk, "due": day()}).status_code == 403
    with pytest.raises(PermissionDenied):
        assign(submission, make_reviewer(), day(), actor=reviewer)
    Membership.objects.create(team=submission.team, user=organizer)
    client.force_login(organizer)
    assert client.get(address(submission)).status_code == 403
    assert not ProofReview.objects.exists()


def test_a_reviewer_with_a_conflict_takes_no_proof_and_reads_why(client, submission, reviewer):
    Membership.objects.create(team=submission.team, user=reviewer)
    with pytest.raises(PermissionDenied, match="member of the submitting team"):
        assign(submission, reviewer, day(), actor=reviewer)
    client.force_login(reviewer)
    page = client.post(reverse("reviews:take", args=[submission.pk]))
    assert (page.status_code, "member of the submitting team" in page.text) == (403, True)
    assert f"You can't review the proof of {submission}" in unescape(page.text)
    assert not ProofReview.objects.exists()
