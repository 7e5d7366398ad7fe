from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from docvqa_site.celery import REMIND_TASK, SECOND_OPINIONS_TASK, app
from docvqa_site.reviews.models import ProofReview
from docvqa_site.reviews.reminders import remind_reviewers
from tests.docvqa_site.factories import make_reviewer, make_user, scored_submission
from tests.docvqa_site.reviews.test_decisions import accept

pytestmark = pytest.mark.django_db


def test_what_is_assigned_is_overdue_after_its_day(reviewer):
    now = timezone.now()
    for days_ago, due in ((20, 1), (3, -1)):
        submission = scored(days_ago)
        ProofReview.objects.create(
            submission=submission, reviewer=reviewer, assigned_at=now, due=now.date() + timedelta(days=due)
        )
    remind_reviewers()
    (sent,) = mail.outbox
    assert "After 20 days" not in sent.body
    assert "was due on" in sent.body


@pytest.fixture
def reviewer():
    return make_reviewer(email="rita@example.org")


def scored(days_ago):
    submission = scored_submission(title=f"After {days_ago} days")
    submission.published_at = timezone.now() - timedelta(days=days_ago)
    submission.save()
    submission.runs.update(scored_at=submission.published_at)
    return submission


def test_reviewers_are_mailed_what_is_new_and_what_is_overdue(reviewer):
    for days_ago in (0, 3, 15):
        scored(days_ago)
    make_user(is_staff=True)
    assert remind_reviewers() == 1
    (sent,) = mail.outbox
    assert sent.to == ["rita@example.org"]
    assert "3 proofs to review" in sent.subject
    assert "“After 0 days” (track: " in sent.body
    assert "“After 15 days” (track: " in sent.body
    assert "waiting for 15 days" in sent.body
    assert "After 3 days" not in sent.body
    assert "/reviews/" in sent.body


def test_nobody_is_mailed_about_what_they_decided_on(reviewer):
    accept(scored(0), reviewer)
    assert remind_reviewers() == 0


def test_a_long_list_is_cut(reviewer, monkeypatch):
    monkeypatch.setattr("docvqa_site.reviews.reminders.MAX_LISTED", 2)
    for _ in range(3):
        scored(0)
    remind_reviewers()
    assert "and 1 more" in mail.outbox[0].body


def test_the_clock_calls_it_every_day():
    app.loader.import_default_modules()
    assert {REMIND_TASK, SECOND_OPINIONS_TASK} <= set(app.tasks)
    (schedule,) = [entry for entry in app.conf.beat_schedule.values() if entry["task"] == REMIND_TASK]
    assert schedule["schedule"].hour == {6}
