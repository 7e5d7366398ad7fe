"""Messages between reviewers and the team, and the team's page."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.reviews.models import Decision, ReviewMessage
from docvqa_site.reviews.selectors import sees_decisions
from docvqa_site.reviews.threads import (
    MAX_MESSAGE,
    MESSAGES_PER_DAY,
    post_message,
    threads_for_reviewer,
)
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_submission,
    make_track,
    make_user,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, decide, reject

pytestmark = pytest.mark.django_db


@pytest.fixture
def submission():
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    return submission


@pytest.fixture
def reviewer():
    return make_reviewer(name="Rita Review", email="rita@example.org")


def lines(threads):
    return [(thread.item, line.author, line.text) for thread in threads for line in thread.lines]


def address(name, submission):
    return reverse(f"reviews:{name}", args=[submission.pk])


def test_the_team_reads_numbers_and_never_names(client, submission, reviewer):
    post_message(submission, "noise", "Which deviation?", author=reviewer)
    post_message(submission, "", "A <b>good</b> start.", author=make_reviewer())
    post_message(submission, "noise", "4 C.", author=submission.created_by)
    client.force_login(submission.created_by)
    page = client.get(address("team", submission)).text
    texts = [
        "Reviewer 1",
        "Which deviation?",
        "Reviewer 2",
        "A &lt;b&gt;good&lt;/b&gt; start.",
        "The team",
        "4 C.",
    ]
    assert sorted(texts, key=page.index) == texts
    assert "Rita" not in page
    assert "rita@" not in page


def test_what_other_reviewers_write_is_hidden_until_ones_own_decision(submission, reviewer):
    post_message(submission, "", "From me.", author=reviewer)
    post_message(submission, "", "From another.", author=make_reviewer())
    post_message(submission, "", "From us.", author=submission.created_by)

    def shown():
        sees = sees_decisions(submission, reviewer)
        return lines(threads_for_reviewer(submission, reviewer, sees_decisions=sees))

    before = [(author, text) for _, author, text in shown()]
    # It may make no sense without what it answers.
    assert before == [("You", "From me."), ("The team, after another reviewer's message", "From us.")]
    post_message(submission, "", "And?", author=reviewer)
    post_message(submission, "", "Yes.", author=submission.created_by)
    assert [author for _, author, _ in shown()][-2:] == ["You", "The team"]
    accept(submission, reviewer)
    authors = [author for _, author, _ in shown()]
    assert authors == ["You", "Reviewer 2", "The team", "You", "The team"]


def test_each_side_is_mailed_once_per_thread_and_quarter_of_an_hour(
    submission, reviewer, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        for item in ("", "", "noise"):
            post_message(submission, item, "Which deviation?", author=reviewer)
        assert [message.to for message in mail.outbox] == [[submission.created_by.email]] * 2
        assert "Reviewer 1 wrote about the proof" in mail.outbox[0].body
        assert "\nOn the question “Are the noise" in mail.outbox[1].body
        assert "rita@" not in f"{mail.outbox[0].subject} {mail.outbox[0].body}"
        mail.outbox.clear()
        post_message(submission, "noise", "4 C.", author=submission.created_by)
        assert [message.to for message in mail.outbox] == [["rita@example.org"]]
        ReviewMessage.objects.update(created_at=timezone.now() - timedelta(minutes=16))
        post_message(submission, "noise", "And C is 1.", author=submission.created_by)
        assert len(mail.outbox) == 2


def test_a_reviewer_who_joined_the_team_gets_no_mail(
    submission, reviewer, django_capture_on_commit_callbacks
):
    post_message(submission, "", "Hello.", author=reviewer)
    Membership.objects.create(team=submission.team, user=reviewer)
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        post_message(submission, "", "Hello.", author=submission.created_by)
    assert mail.outbox == []


@pytest.mark.parametrize(("item", "text"), [("", " "), ("", "x" * (MAX_MESSAGE + 1)), ("unknown", "Hello.")])
def test_empty_and_long_texts_and_other_items_are_rejected(submission, item, text):
    with pytest.raises(ValidationError):
        post_message(submission, item, text, author=submission.created_by)
    assert not ReviewMessage.objects.exists()


def test_a_team_writes_so_much_a_day_in_all_its_threads(submission):
    other = make_submission(submission.team, submission.track, state=SubmissionState.SUBMITTED)
    ReviewMessage.objects.bulk_create(
        ReviewMessage(submission=other, author=other.created_by, by_team=True, text="Hello.")
        for _ in range(MESSAGES_PER_DAY)
    )
    with pytest.raises(ValidationError, match="24 hours"):
        post_message(submission, "", "Hello.", author=submission.created_by)
    ReviewMessage.objects.update(created_at=timezone.now() - timedelta(hours=25))
    post_message(submission, "", "Hello.", author=submission.created_by)


def test_others_write_nothing_and_find_no_page(client, submission):
    for outsider in (make_user(), make_user(is_staff=True), make_reviewer()):
        client.force_login(outsider)
        assert client.get(address("team", submission)).status_code == 404
        for name in ("team_message", "team_appeal"):
            assert client.post(address(name, submission), {"text": "Hello."}).status_code == 404
    with pytest.raises(PermissionDenied):
        post_message(submission, "", "Hello.", author=make_user())
    client.force_login(submission.created_by)
    assert client.post(address("message", submission), {"text": "Hello."}).status_code == 403
    draft = make_submission(submission.team, make_track("anls"))
    assert client.get(address("team", draft)).status_code == 404
    assert client.get(address("team_message", submission)).status_code == 405
    client.logout()
    assert "/login/" in client.get(address("team", submission)).url
    assert not ReviewMessage.objects.exists()


def test_the_pages_post_messages_and_say_what_is_wrong(client, submission, reviewer):
    client.force_login(reviewer)
    sent = client.post(address("message", submission), {"item": "noise", "text": "Which deviation?"})
    assert sent.url == address("desk", submission) + "#item-noise"
    assert client.post(address("message", submission), {"text": ""}).status_code == 422
    desk = client.get(address("desk", submission)).text
    assert desk.index('id="item-noise"') < desk.index("Which deviation?") < desk.index('id="item-adaptivity"')
    assert '<span class="badge">1 message</span></summary>' in desk
    # It is said where the page is opened.
    client.post(address("message", submission), {"item": "noise", "text": "And the sampling?"})
    desk = client.get(address("desk", submission)).text
    done = desk.index("Your message has been sent to the team.")
    assert desk.index('id="item-noise"') < done < desk.index('id="item-adaptivity"')
    assert desk.count("Your message has been sent to the team.") == 1
    client.force_login(submission.created_by)
    sent = client.post(address("team_message", submission), {"item": "noise", "text": "4 C."})
    assert sent.url == address("team", submission)
    client.force_login(reviewer)
    desk = client.get(address("desk", submission)).text
    assert '<span class="badge">3 messages, last from the team</span></summary>' in desk
    client.force_login(submission.created_by)
    assert client.post(address("team_message", submission), {"item": "x", "text": "4 C."}).status_code == 422
    assert AuditEntry.objects.filter(action="review_message.posted").count() == 3


def test_the_team_reads_decisions_with_notes_and_is_led_there(client, submission, reviewer):
    ask(submission, reviewer, "State the sampling.")
    client.force_login(submission.created_by)
    page = client.get(address("team", submission)).text
    assert "asked for changes" in page
    assert "State the sampling." in page
    assert "Changes requested" in page
    due = timezone.now().date() + timedelta(days=14)
    assert f"Upload a revised proof</a> by {due:%b} {due.day}, {due.year} to restart the review" in page
    own = client.get(submission.get_absolute_url()).text
    assert address("team", submission) in own
    assert "Under review: changes to the proof requested" in own
    client.logout()
    public = client.get(submission.get_absolute_url()).text
    assert "Under review: changes to the proof requested" in public
    assert "State the sampling." not in public


def test_the_team_replies_from_a_message_and_reads_at_once_what_to_fix(client, submission, reviewer):
    post_message(submission, "noise", "Which deviation?", author=reviewer)
    post_message(submission, "noise", "4 C.", author=submission.created_by)
    due = timezone.now().date() + timedelta(days=9)
    answers = {"noise": "no", "unit": "yes"}
    notes = {"noise": "Half precision.", "unit": "Well said."}
    decide(
        submission,
        Decision.CHANGES_REQUESTED,
        "Fix it.",
        answers,
        actor=reviewer,
        notes=notes,
        changes_due=due,
    )
    client.force_login(submission.created_by)
    page = client.get(address("team", submission)).text
    assert page.count(">Reply<") == 1
    assert '<a href="?about=noise#letter" data-ask="noise">Reply<' in page
    assert 'value="noise" selected' in client.get(address("team", submission) + "?about=noise").text
    assert "selected" not in client.get(address("team", submission) + "?about=nothing").text
    assert re.search(r"<details open>\s*<summary>2 notes on individual questions", page)


def test_the_public_page_hides_counts_from_reviewers_who_have_yet_to_decide(client, submission, reviewer):
    accept(submission, make_reviewer())
    counts = "1 of 2 reviewers has accepted"
    assert counts in client.get(submission.get_absolute_url()).text
    client.force_login(reviewer)
    page = client.get(submission.get_absolute_url()).text
    assert counts not in page
    assert "after you decide" in page
    assert "How many reviewers have accepted is public" in client.get(address("desk", submission)).text
    accept(submission, reviewer)
    assert "<strong>Proof accepted</strong> by" in client.get(submission.get_absolute_url()).text


def test_a_rejection_is_on_the_teams_page(client, submission, reviewer):
    reject(submission, reviewer)
    client.force_login(submission.created_by)
    assert "No composition over rounds." in client.get(address("team", submission)).text
