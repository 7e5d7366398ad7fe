"""Messages between the reviewers of a proof and the team that wrote it; reviewers are numbered, never named."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.eligibility import review_barred_because
from docvqa_site.reviews.models import ProofReview, ReviewMessage
from docvqa_site.reviews.selectors import reviewer_numbers
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import active_members, team_of

MAX_MESSAGE = 4_000
# Of one team, in all of its threads.
MESSAGES_PER_DAY = 20
# A side gets at most one mail about a thread in this time.
MAIL_INTERVAL = timedelta(minutes=15)

QUESTIONS = {item.key: item.question for item in CHECKLIST}
GENERAL = "In general"


@dataclass(frozen=True)
class ThreadLine:
    """A message as a page shows it."""

    author: str
    text: str
    at: datetime
    by_team: bool


@dataclass(frozen=True)
class Thread:
    """The messages about one item of the checklist, or in general."""

    item: str
    lines: list[ThreadLine]

    @property
    def title(self) -> str:
        """What the messages are about."""
        return QUESTIONS.get(self.item, GENERAL)


def threads_for_reviewer(submission: Submission, reviewer: User, *, sees_decisions: bool) -> list[Thread]:
    """Return the messages about the proof: of other reviewers only where the reviewer reads their decisions."""
    numbers = reviewer_numbers(submission)
    found: dict[str, list[ThreadLine]] = {}
    # About which items the last message before was another reviewer's, which is hidden.
    asked: set[str] = set()
    for message in submission.review_messages.all():
        if message.by_team:
            # What the team writes to others isn't hidden: it speaks for its proof to all of them.
            author = "The team, after another reviewer's message" if message.item in asked else "The team"
        elif message.author_id == reviewer.pk:
            author = "You"
            asked.discard(message.item)
        elif sees_decisions:
            author = f"Reviewer {numbers.get(message.author_id, '')}".strip()
        else:
            asked.add(message.item)
            continue
        line = ThreadLine(author, message.text, message.created_at, message.by_team)
        found.setdefault(message.item, []).append(line)
    return [Thread(item, found[item]) for item in ["", *QUESTIONS] if item in found]


def post_message(submission: Submission, item: str, text: str, *, author: User) -> ReviewMessage:
    """Add a message by a member of the submission's team, or by a reviewer, and mail it to the other side.

    Raises:
        PermissionDenied: The author is neither.
        ValidationError: The text is empty or too long, the item unknown, or the team has written too much today.
    """
    by_team = is_of_team(submission, author)
    if not by_team and (rejection := review_barred_because(submission, author)):
        raise PermissionDenied(rejection)
    text = text.strip()
    if submission.state != SubmissionState.SUBMITTED:
        raise ValidationError("Only submitted proofs can be discussed.")
    if not text or len(text) > MAX_MESSAGE:
        raise ValidationError(f"Write at most {MAX_MESSAGE} characters.")
    if item and item not in QUESTIONS:
        raise ValidationError("Choose a question from the checklist.")
    with transaction.atomic():
        # Messages of one team are counted one after the other.
        Team.objects.select_for_update().get(pk=submission.team_id)
        if by_team and _written_today(submission.team_id) >= MESSAGES_PER_DAY:
            raise ValidationError(f"Teams can write at most {MESSAGES_PER_DAY} messages in 24 hours.")
        if not by_team:
            # From now on the reviewer has a number.
            ProofReview.objects.get_or_create(submission=submission, reviewer=author)
        message = ReviewMessage.objects.create(
            submission=submission,
            item=item,
            author=author,
            by_team=by_team,
            text=text,
            is_mailed=_is_mail_due(submission, item, by_team=by_team),
        )
        record(
            author,
            "review_message.posted",
            message,
            submission=str(submission.pk),
            item=item,
            by_team=by_team,
        )
        if message.is_mailed:
            _mail(message)
    return message


def is_of_team(submission: Submission, user: User) -> bool:
    """Return whether the user is a member of the team that made the submission."""
    team = team_of(user)
    return team is not None and team.pk == submission.team_id


def _written_today(team: int) -> int:
    since = timezone.now() - timedelta(days=1)
    return ReviewMessage.objects.filter(submission__team=team, by_team=True, created_at__gt=since).count()


def _is_mail_due(submission: Submission, item: str, *, by_team: bool) -> bool:
    recent = timezone.now() - MAIL_INTERVAL
    earlier = submission.review_messages.filter(
        item=item, by_team=by_team, is_mailed=True, created_at__gt=recent
    )
    return not earlier.exists()


def _mail(message: ReviewMessage) -> None:
    submission = message.submission
    # On a line of its own: it's a question, but not the writer's.
    about = f"On the question “{QUESTIONS[message.item]}”:" if message.item in QUESTIONS else ""
    minutes = MAIL_INTERVAL // timedelta(minutes=1)
    more = f"You won't get more emails about this thread for {minutes} minutes."
    if message.by_team:
        page = settings.SITE_URL + reverse("reviews:desk", args=[submission.pk])
        lines = [f"The team wrote about the proof of “{submission}”.", about, message.text, more, page]
        notify(
            _reviewers(submission),
            Kind.REVIEWING,
            f"Proof of {submission}: new message from the team",
            filter(None, lines),
        )
        return
    page = settings.SITE_URL + reverse("reviews:team", args=[submission.pk])
    number = reviewer_numbers(submission)[message.author_id]
    lines = [f"Reviewer {number} wrote about the proof of “{submission}”.", about, message.text, more, page]
    notify(
        active_members(submission.team),
        Kind.PROOFS,
        f"Proof of {submission}: new message from a reviewer",
        filter(None, lines),
    )


def _reviewers(submission: Submission) -> list[User]:
    """Return whoever has begun to review the proof and may still do so."""
    reviews = submission.reviews.select_related("reviewer")
    return [review.reviewer for review in reviews if not review_barred_because(submission, review.reviewer)]
