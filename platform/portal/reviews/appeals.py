"""Appeals: once for each submission, a team may ask for another reviewer after a rejection."""

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse

from portal.accounts.models import User
from portal.audit.models import record
from portal.notifications.kinds import Kind
from portal.notifications.sending import notify
from portal.reviews.assignments import organizers_for
from portal.reviews.models import Appeal
from portal.reviews.selectors import verdict_on
from portal.reviews.threads import is_of_team
from portal.reviews.verdict import ResultStatus, Verdict
from portal.submissions.models import Submission, SubmissionState

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
    if not is_of_team(submission, author):
        raise PermissionDenied("Only the team appeals.")
    text = text.strip()
    if not text or len(text) > MAX_APPEAL:
        raise ValidationError(f"Write at most {MAX_APPEAL} characters.")
    with transaction.atomic():
        submission = Submission.objects.select_for_update().get(pk=submission.pk)
        if not may_appeal(submission, verdict_on(submission)):
            raise ValidationError("A team can appeal once per submission, after a rejection.")
        found = Appeal.objects.create(submission=submission, author=author, text=text)
        record(author, "appeal.made", found, submission=str(submission.pk), text=text)
        _mail_organizers(found)
    return found


def _mail_organizers(found: Appeal) -> None:
    submission = found.submission
    notify(
        organizers_for(submission),
        Kind.REVIEWING,
        f"Proof of {submission}: appeal",
        [
            f"The team of {submission} has appealed the rejection of its privacy proof. Please assign a "
            "reviewer who hasn't decided yet, or take the review.",
            settings.SITE_URL + reverse("reviews:assign", args=[submission.pk]),
        ],
    )
