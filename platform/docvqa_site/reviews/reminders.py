"""The daily mail to reviewers whose decisions are needed."""

from datetime import date, datetime, timedelta

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.deadlines import REVIEW_TIME
from docvqa_site.reviews.selectors import awaiting_review, reviewers
from docvqa_site.submissions.models import Submission

NEW = timedelta(days=1)
# A mail lists so many; the rest is on the page.
MAX_LISTED = 10


def remind_reviewers(now: datetime | None = None) -> int:
    """Mail every reviewer what has arrived since yesterday and what is overdue for them; return the number of mails.

    Whoever has only proofs that are neither new nor overdue, or none, gets no mail.
    """
    now = now or timezone.now()
    return sum(_remind(reviewer, now) for reviewer in reviewers())


def _remind(reviewer: User, now: datetime) -> bool:
    waiting = list(awaiting_review(reviewer).select_related("track").prefetch_related("runs"))
    assigned = reviewer.proof_reviews.filter(due__isnull=False, submission__in=[one.pk for one in waiting])
    due = dict(assigned.values_list("submission_id", "due"))
    lines = [line for submission in waiting if (line := _line(submission, due.get(submission.pk), now))]
    if not lines:
        return False
    more = [f"… and {len(lines) - MAX_LISTED} more."] if len(lines) > MAX_LISTED else []
    count = f"{len(waiting)} proof{'s' if len(waiting) > 1 else ''}"
    text = (
        f"Proofs waiting for your review: {len(waiting)}. The following are new, are overdue, or have been "
        f"waiting for more than {REVIEW_TIME.days} days:"
    )
    page = settings.SITE_URL + reverse("reviews:queue")
    notify([reviewer], Kind.REVIEWING, f"{count} to review", [text, *lines[:MAX_LISTED], *more, page])
    return True


def _line(submission: Submission, due: date | None, now: datetime) -> str:
    """Return what the mail says of a submission; nothing if it is neither new nor overdue.

    Where the reviewer was asked to decide by a day, `due`, that day counts instead of the age.
    """
    scored_at = max(run.scored_at for run in submission.runs.all() if run.scored_at)
    age = now - max(scored_at, submission.published_at or scored_at)
    if age <= NEW:
        return f"“{submission}” (track: {submission.track}): new"
    if due:
        return (
            f"“{submission}” (track: {submission.track}): was due on {due:%b %-d, %Y}"
            if due < now.date()
            else ""
        )
    return (
        f"“{submission}” (track: {submission.track}): waiting for {age.days} days"
        if age > REVIEW_TIME
        else ""
    )
