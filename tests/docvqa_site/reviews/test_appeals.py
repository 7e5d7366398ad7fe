from html import unescape

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse

from docvqa_site.audit.models import AuditEntry
from docvqa_site.reviews.appeals import appeal
from docvqa_site.reviews.models import Appeal, Recusal
from docvqa_site.reviews.recusals import recuse
from docvqa_site.reviews.selectors import (
    awaiting_review,
    disclosed_submissions,
    is_settled,
    open_appeals,
    verdict_on,
)
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import Submission
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
from tests.docvqa_site.reviews.test_decisions import accept, reject, reject_for_good

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer():
    return make_reviewer()


@pytest.fixture
def submission(reviewer):
    submission = scored_submission()
    reject_for_good(submission, reviewer)
    return submission


def test_it_brings_the_proof_to_reviewers_who_have_not_decided(submission, reviewer):
    other = make_reviewer()
    assert list(awaiting_review(other)) == []
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    assert list(awaiting_review(other)) == [submission]
    assert list(awaiting_review(reviewer)) == []
    assert verdict_on(submission).status == ResultStatus.REJECTED
    entry = AuditEntry.objects.get(action="appeal.made")
    assert (entry.actor, entry.details["text"]) == (submission.created_by, "Section 3 has it.")


def test_an_acceptance_after_it_makes_reviewers_disagree(submission):
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    accept(submission, make_reviewer())
    submission.refresh_from_db()
    assert verdict_on(submission).is_split


def test_it_ends_when_another_reviewer_rejects(submission):
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    reject(submission, make_reviewer())
    assert list(awaiting_review(make_reviewer())) == []


def test_it_ends_when_the_proof_is_revised(client, submission):
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    reject(submission, make_reviewer())
    assert not open_appeals().exists()
    client.force_login(submission.created_by)
    page = client.get(reverse("reviews:team", args=[submission.pk])).text
    assert "Section 3 has it." in page
    assert "Closed: the team has sent a revised proof." in page
    client.force_login(make_reviewer())
    assert "appeal" not in client.get(reverse("reviews:desk", args=[submission.pk])).text.lower()


def closed_appeal_on(client, page, submission, reader):
    client.force_login(reader)
    return " ".join(unescape(client.get(reverse(f"reviews:{page}", args=[submission.pk])).text).split())


def test_it_is_closed_when_a_rejection_is_withdrawn_and_both_sides_read_that(client):
    submission, conflicted = scored_submission(), make_reviewer()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    reject(submission, make_reviewer())
    reject(submission, conflicted)
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    recuse(submission, Recusal.Why.CONFLICT, "", actor=conflicted)
    accept(submission, make_reviewer())
    team = closed_appeal_on(client, "team", submission, submission.created_by)
    desk = closed_appeal_on(client, "desk", submission, make_reviewer())
    for page in (team, desk):
        assert "Closed: the proof is no longer rejected." in page
    assert "should now read the proof" not in desk
    assert "Section 3 has it." in desk


def test_a_verdict_after_it_is_final(client, submission):
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    for _ in range(3):
        accept(submission, make_reviewer())
    submission = Submission.objects.get(pk=submission.pk)
    assert verdict_on(submission).status == ResultStatus.VERIFIED
    assert is_settled(submission)
    assert not open_appeals().exists()
    assert submission in disclosed_submissions(make_reviewer())


def test_both_sides_read_that_another_reviewer_rejected_the_proof_too(client, submission):
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    reject(submission, make_reviewer())
    for page, reader in (("team", submission.created_by), ("desk", make_reviewer())):
        assert "Closed: another reviewer has rejected the proof." in closed_appeal_on(
            client, page, submission, reader
        )


def test_those_are_mailed_who_may_assign_a_reviewer(submission, django_capture_on_commit_callbacks):
    organizer = make_organizer("organize")
    mail.outbox.clear()
    submission.created_by.is_staff = True
    submission.created_by.save()
    submission.created_by.user_permissions.set(organizer.user_permissions.all())
    with django_capture_on_commit_callbacks(execute=True):
        appeal(submission, "Section 3 has it.", author=submission.created_by)
    (message,) = mail.outbox
    assert message.to == [organizer.email]
    # Nobody is left to be assigned.
    assert "Nobody else can review this proof" in message.body
    assert "Section 3 has it." in message.body
    assert reverse("reviews:assign", args=[submission.pk]) in message.body


def test_each_reads_what_they_can_do(submission, reviewer, django_capture_on_commit_callbacks):
    organizer, able = make_organizer("organize"), make_reviewer()
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        appeal(submission, "Section 3 has it.", author=submission.created_by)
    texts = {message.to[0]: message.body for message in mail.outbox}
    assert texts.keys() == {organizer.email, able.email}
    assert "Please take the review" in texts[able.email]
    assert "Please assign a reviewer" in texts[organizer.email]
    assert all("Section 3 has it." in text for text in texts.values())


def test_lists_and_the_desk_say_that_it_is_open(client, submission, reviewer):
    desk = reverse("reviews:desk", args=[submission.pk])
    client.force_login(reviewer)
    assert "appeal open" not in client.get("/reviews/").text + client.get(desk).text
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    assert '<span class="badge">appeal open</span>' in client.get("/reviews/").text
    assert "Proof rejected, appeal open" in client.get(desk).text
    assert "rejected, appeal open</td>" in client.get("/admin/reviews/proof/?state=appealed").text
    organizer = make_organizer("organize", "view_submission")
    client.force_login(organizer)
    assert '<a href="/admin/reviews/proof/?state=appealed">1 open appeal</a>' in client.get("/organize/").text
    reject(submission, make_reviewer())
    assert "open appeal" not in client.get("/organize/").text


def test_where_nobody_is_left_pages_say_so(client, submission):
    team, assigning = (reverse(f"reviews:{name}", args=[submission.pk]) for name in ("team", "assign"))
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    client.force_login(submission.created_by)
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    page = unescape(client.get(team).text)
    assert "Your appeal is open." in page
    assert page.count("Section 3 has it.") == 1
    assert "Nobody is left to read the proof" in page
    organizer = make_organizer("organize", "change_track")
    client.force_login(organizer)
    assert '<a href="/organize/people/">Invite another reviewer</a>' in client.get(assigning).text
    make_reviewer()
    assert "Invite another reviewer" not in client.get(assigning).text
    client.force_login(submission.created_by)
    assert "Reviewers who haven't decided yet have been asked" in unescape(client.get(team).text)


def test_once_for_each_submission_and_only_after_a_rejection(submission):
    appeal(submission, "Section 3 has it.", author=submission.created_by)
    with pytest.raises(ValidationError, match="once"):
        appeal(submission, "Really.", author=submission.created_by)
    accepted = scored_submission()
    with pytest.raises(ValidationError, match="after a rejection"):
        appeal(accepted, "Thanks.", author=accepted.created_by)


@pytest.mark.parametrize("text", ["  ", "x" * 5_001])
def test_it_has_a_text_of_some_length(submission, text):
    with pytest.raises(ValidationError):
        appeal(submission, text, author=submission.created_by)
    assert not Appeal.objects.exists()


def test_only_the_team_appeals(submission):
    with pytest.raises(PermissionDenied):
        appeal(submission, "Section 3 has it.", author=make_user())


def test_the_teams_page_offers_it_once_and_the_desk_shows_it(client, submission):
    client.force_login(submission.created_by)
    page, post = (reverse(f"reviews:{name}", args=[submission.pk]) for name in ("team", "team_appeal"))
    assert post in client.get(page).text
    assert client.post(post, {"text": " "}).status_code == 422
    assert client.post(post, {"text": "Section 3 has it."}).url == page
    assert post not in client.get(page).text
    assert client.post(post, {"text": "Again."}).status_code == 422
    client.force_login(make_reviewer())
    assert "Section 3 has it." in client.get(reverse("reviews:desk", args=[submission.pk])).text
