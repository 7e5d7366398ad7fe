"""Appeals: once for each submission, a team may ask for another reviewer after a rejection.

`docvqa_site.reviews.run_appeals` has those against disqualifications.
"""

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.decision_mails import ADD_REVIEWER, NOBODY_LEFT
from docvqa_site.reviews.eligibility import eligible_reviewers, organizers_for
from docvqa_site.reviews.models import Appeal
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.reviews.threads import is_of_team
from docvqa_site.reviews.verdict import ResultStatus, Verdict
from docvqa_site.submissions.models import Submission, SubmissionState

MAX_APPEAL = 5_000


def may_appeal(submission: Submission, found: Verdict) -> bool:
    """Return whether the submission's team may appeal against this verdict."""
    is_rejected = submission.state == SubmissionState.SUBMITTED and found.status is ResultStatus.REJECTED
    return is_rejected and not Appeal.objects.filter(submission=submission).exists()


def appeal(submission: Submission, text: str, *, author: User) -> Appeal:
    """Ask for another reviewer: the proof is in the queues of those who haven't decided, until one rejects it again.

    The rejection stands meanwhile.

    Raises:
        PermissionDenied: The author isn't a member of the submission's team.
        ValidationError: There is no rejection, it was appealed against before, or the text is empty or too long.
    """
    text = appeal_text(submission, text, author)
    with transaction.atomic():
        submission = Submission.objects.select_for_update().get(pk=submission.pk)
        if not may_appeal(submission, verdict_on(submission)):
            raise ValidationError("A team can appeal once per submission, after a rejection.")
        found = Appeal.objects.create(submission=submission, author=author, text=text)
        record(author, "appeal.made", found, submission=str(submission.pk), text=text)
        _mail(found)
    return found


def _mail(found: Appeal) -> None:
    """Ask those who can decide to do so, and the other organizers for a reviewer."""
    submission = found.submission
    subject = f"Proof of {submission}: appeal"
    lines = [
        f"The team of “{submission}” has appealed the rejection of its privacy proof.",
        *quoted(found.text),
    ]
    desk, assign = (
        settings.SITE_URL + reverse(f"reviews:{page}", args=[submission.pk]) for page in ("desk", "assign")
    )
    able, organizers = eligible_reviewers(submission), organizers_for(submission)
    take = "You haven't decided yet. Please take the review if you can:"
    notify(able, Kind.REVIEWING, subject, [*lines, take, desk])
    todo = "Please assign a reviewer who hasn't decided yet:" if able else f"{NOBODY_LEFT} {ADD_REVIEWER}"
    others = [one for one in organizers if one not in able]
    notify(others, Kind.REVIEWING, subject, [*lines, todo, assign])


def quoted(text: str) -> list[str]:
    """Return the paragraphs of a notification that quote an appeal."""
    return ["The team's reasons:", text]


def appeal_text(submission: Submission, text: str, author: User) -> str:
    """Return the text of an appeal without the space around it.

    Raises:
        PermissionDenied: The author isn't a member of the submission's team.
        ValidationError: The text is empty or too long.
    """
    if not is_of_team(submission, author):
        raise PermissionDenied("Only the team can appeal.")
    text = text.strip()
    if not text or len(text) > MAX_APPEAL:
        raise ValidationError(f"Write at most {MAX_APPEAL} characters.")
    return text
