"""A decision as a form posts it, at the desk and in the administration."""

from contextlib import suppress

from django.core.exceptions import ValidationError

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.reviews.decision_mails import NOBODY_LEFT, takes_effect
from docvqa_site.reviews.eligibility import eligible_reviewers
from docvqa_site.reviews.forms import ReviewForm
from docvqa_site.reviews.models import ProofReview
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.reviews.services import ProofRevisedError, decide, save_draft
from docvqa_site.submissions.models import Submission


def take_decision(request: UserRequest, submission: Submission, form: ReviewForm) -> ProofReview | None:
    """Record the decision of a posted form; without one that can be recorded, the form has the problems.

    What was written isn't lost with the page: it is the reviewer's draft then.
    """
    if not form.is_valid():
        return None
    draft, version = form.draft(), read_version(request)
    try:
        return decide(
            submission,
            draft.decision,
            draft.reason,
            draft.answers,
            actor=request.user,
            notes=draft.notes,
            changes_due=draft.changes_due,
            change_reason=draft.change_reason,
            declares_no_conflict=draft.declares_no_conflict,
            confirms_contradiction=form.cleaned_data["confirms_contradiction"],
            version=version,
        )
    except ValidationError as error:
        # What was written about a newer version stays.
        with suppress(ProofRevisedError):
            save_draft(submission, draft, actor=request.user, version=version)
        form.add_error(None, error)
        if isinstance(error, ProofRevisedError):
            form.clear_answers()
        return None


def confirmation(review: ProofReview) -> str:
    """Return what the reviewer reads once their decision is recorded: the decision, and what comes of it for now."""
    found = verdict_on(review.submission)
    text = f"Your decision on {review.submission} is recorded: {review.get_decision_display()}."
    if not found.is_open:
        text += f" The verdict is final: {found.outcome}."
    if found.is_proposal:
        text += (
            " This is a proposal: the run loses its rank once a second reviewer agrees, or on "
            f"{takes_effect(review):%b %-d, %Y} if nobody else decides."
        )
    elif found.is_split:
        text += " The reviewers disagree."
    if not (found.is_proposal or found.is_split):
        return text
    if eligible_reviewers(review.submission):
        return f"{text} Another reviewer has been asked to decide."
    return f"{text} {NOBODY_LEFT} The organizers have been asked to add a reviewer."


def read_version(request: UserRequest) -> int | None:
    """Return the version of the proof that the page showed; None if it doesn't say."""
    written = request.POST.get("version", "")
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 5 else None
