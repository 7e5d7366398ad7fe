"""The ways from a page about a submission's proof or code to what it is part of."""

from dataclasses import dataclass

from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.reviews.threads import QUESTIONS, is_of_team
from docvqa_site.submissions.models import Submission, SubmissionState


@dataclass(frozen=True)
class WayBack:
    """A link to a page that a proof is part of; `what` names it within a sentence."""

    name: str
    address: str
    what: str = ""


def ways_back(user: User, submission: Submission, question: str = "") -> list[WayBack]:
    """Return what a proof is part of, the outermost first; the last way leads back to the review.

    Args:
        question: The key of the question that a reviewer came from, to which the way leads if it is on the checklist.
    """
    page = WayBack(str(submission), submission.get_absolute_url(), "the submission")
    is_submitted = submission.state == SubmissionState.SUBMITTED
    if is_of_team(submission, user):
        ways = [WayBack("Submissions", reverse("submissions:list")), page]
        if is_submitted:
            ways.append(WayBack("Proof review", reverse("reviews:team", args=[submission.pk]), "the review"))
        return ways
    if is_submitted and is_reviewer(user):
        place = f"#item-{question}" if question in QUESTIONS else ""
        desk = reverse("reviews:desk", args=[submission.pk]) + place
        return [
            WayBack("Proof reviews", reverse("reviews:queue")),
            WayBack(str(submission), desk, "the review"),
        ]
    return [page]
