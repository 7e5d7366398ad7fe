"""The reviewers' desk: one proof beside the checklist, the decision on it, messages to its team, and assignment."""

import secrets
from collections.abc import Mapping
from functools import wraps
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.evaluation.display.status import statuses
from docvqa_site.limits import Limit
from docvqa_site.notifications.inbox import mark_opened
from docvqa_site.proofs.named_code import named_code
from docvqa_site.proofs.shown import sections_of
from docvqa_site.reviews.access import View, conflict_page, for_reviewers, reviewed_submission
from docvqa_site.reviews.assignments import assign, unassign
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME
from docvqa_site.reviews.deciding import confirmation, read_version, take_decision
from docvqa_site.reviews.drafts import MAX_NOTE, MAX_WINDOW, draft_of, version_of
from docvqa_site.reviews.eligibility import (
    able_reviewers,
    assigning_barred_because,
    eligible_reviewers,
    may_organize,
    review_barred_because,
)
from docvqa_site.reviews.evidence import facts_on
from docvqa_site.reviews.forms import (
    ANSWERS,
    AssignedForm,
    AssignmentForm,
    MessageForm,
    RecusalForm,
    ReviewForm,
    initial_of,
)
from docvqa_site.reviews.history import last_decision
from docvqa_site.reviews.models import Decision, ProofReview, Recusal
from docvqa_site.reviews.recusals import lift_recusal, recuse, withdrawal_effect
from docvqa_site.reviews.sections import sections_by_question
from docvqa_site.reviews.selectors import (
    AppealState,
    appeals,
    is_settled,
    opinions_due,
    reads_decisions,
    review_due,
    verdict_on,
)
from docvqa_site.reviews.services import save_draft, saved_at
from docvqa_site.reviews.threads import post_message, threads_for_reviewer
from docvqa_site.reviews.timeline import timeline
from docvqa_site.submissions.models import Artifact, Submission
from docvqa_site.submissions.unresolved_challenges import challenges_against

# The decisions as the desk offers them, each with what the button says.
DECISIONS = {
    Decision.ACCEPTED: "Accept",
    Decision.CHANGES_REQUESTED: "Request changes",
    Decision.REJECTED: "Reject",
}
DRAFTS = Limit("review-draft", 60)


def for_this_review(view: View) -> View:
    """Return the view of a submission for those who may review it; others read why they may not.

    It is called with the submission and what was looked up about the visitor.
    """

    @wraps(view)
    def checked(request: UserRequest, submission_id: UUID) -> HttpResponse:
        submission, conflicts = reviewed_submission(submission_id), Conflicts(request.user)
        if rejection := review_barred_because(submission, request.user, conflicts):
            return conflict_page(request, submission, rejection)
        return view(request, submission, conflicts)

    return for_reviewers(checked)


@require_http_methods(["GET", "HEAD", "POST"])
@for_reviewers
def desk(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Show the proof beside the checklist, and record the decision that is posted.

    Who coordinates the review reads the decisions instead of the checklist.
    """
    submission, conflicts = reviewed_submission(submission_id), Conflicts(request.user)
    mark_opened(request)
    if rejection := review_barred_because(submission, request.user, conflicts):
        if request.method != "POST" and submission.pk in conflicts.recused_from(Recusal.Why.COORDINATION):
            return _desk(request, submission, conflicts, None, None)
        return conflict_page(request, submission, rejection)
    if request.method != "POST":
        return _desk(request, submission, conflicts, _own(submission, request), None)
    form = ReviewForm(request.POST)
    if review := take_decision(request, submission, form):
        messages.success(request, confirmation(review))
        return redirect("reviews:queue")
    return _desk(request, submission, conflicts, _own(submission, request), form)


@require_POST
@for_this_review
def draft(request: UserRequest, submission: Submission, conflicts: Conflicts) -> HttpResponse:
    """Keep what the reviewer has written. A script gets the bar's new text, and everybody else the page."""
    form, is_script = ReviewForm(request.POST), "HX-Request" in request.headers
    own, problem = _own(submission, request), ""
    if wait_s := DRAFTS.wait_s(str(request.user.pk)):
        problem = f"saved too often, please wait {wait_s} seconds."
    elif form.is_valid():
        try:
            own = save_draft(
                submission,
                form.draft().model_copy(update={"window": request.POST.get("window", "")[:MAX_WINDOW]}),
                actor=request.user,
                decided_at=request.POST.get("decided_at"),
                version=read_version(request),
                drafted_at=request.POST.get("drafted_at"),
            )
        except ValidationError as error:
            problem = " ".join(error.messages)
    else:
        problem = " ".join(str(errors[0]) for errors in form.errors.values())
    if is_script:
        return render(request, "reviews/desk_saved.html", _state(own, submission.proof(), problem))
    if problem:
        messages.error(request, f"Your draft couldn't be saved: {problem}")
        return _desk(request, submission, conflicts, own, form)
    messages.success(request, "Your draft is saved. Only you can see it.")
    return redirect("reviews:desk", submission.pk)


@require_POST
@for_this_review
def message(request: UserRequest, submission: Submission, conflicts: Conflicts) -> HttpResponse:
    """Post a message to the team."""
    form = MessageForm(request.POST)
    if form.is_valid():
        try:
            post_message(submission, form.about(), form.cleaned_data["text"], author=request.user)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            place = f"item-{form.about()}" if form.about() else "messages"
            messages.success(request, "Your message has been sent to the team.", extra_tags=place)
            return redirect(f"{reverse('reviews:desk', args=[submission.pk])}#{place}")
    return _desk(request, submission, conflicts, _own(submission, request), None, form)


@require_POST
@for_this_review
def step_aside(request: UserRequest, submission: Submission, _: Conflicts) -> HttpResponse:
    """Record why the reviewer doesn't decide on the proof."""
    form = RecusalForm(request.POST, effect=_withdrawal_effect(_own(submission, request)))
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect("reviews:desk", submission.pk)
    why = Recusal.Why(form.cleaned_data["why"])
    effect = "Your decision has been withdrawn, and the team notified. " if "withdraws" in form.fields else ""
    try:
        recuse(submission, why, form.cleaned_data["text"], actor=request.user)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("reviews:desk", submission.pk)
    if why is Recusal.Why.COORDINATION:
        messages.success(request, "You're now coordinating this review and can read every decision.")
        return redirect("reviews:desk", submission.pk)
    messages.success(
        request, f"You no longer review {submission}. {effect}The organizers have been informed."
    )
    return redirect("reviews:queue")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def assignment(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Let an organizer assign a reviewer."""
    if not may_organize(request.user):
        raise PermissionDenied
    submission = reviewed_submission(submission_id)
    if rejection := assigning_barred_because(submission, request.user):
        raise PermissionDenied(rejection)
    mark_opened(request)
    assigned = submission.reviews.filter(assigned_at__isnull=False).select_related("reviewer")
    changes = [(review, _assigned_form(review, assigned, request.POST)) for review in assigned]
    changing = next((form for _, form in changes if form.is_bound), None)
    if "assigned" in request.POST and (done := _change_assignment(request, submission, changing)):
        return done
    if request.method == "POST" and "lift" in request.POST:
        return _lift(request, submission)
    taken = {review.reviewer_id for review in assigned}
    eligible_for_review = eligible_reviewers(submission)
    eligible = [one for one in eligible_for_review if one.pk not in taken]
    form = AssignmentForm(
        eligible, None if changing else request.POST or None, initial={"due": review_due(submission)}
    )
    if form.is_valid():
        reviewer, due = form.cleaned_data["reviewer"], form.cleaned_data["due"]
        try:
            assign(submission, reviewer, due, actor=request.user)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, f"{reviewer} has been asked to decide by {due:%b %-d, %Y}.")
            return redirect("reviews:assign", submission.pk)
    context = {
        "submission": submission,
        "form": form,
        "assigned": changes,
        "changing": changing,
        "is_settled": is_settled(submission),
        "required": (required := submission.track.required_reviews),
        "unassigned": max(required - len(changes), 0),
        "eligible": eligible,
        "able": able_reviewers(submission, eligible_for_review),
        "invites": request.user.has_perm("challenge.change_track")
        and not request.user.organizes_single_tracks,
        "recusals": submission.recusals.select_related("person"),
    }
    return render(request, "reviews/assign.html", context)


def _assigned_form(
    review: ProofReview, assigned: QuerySet[ProofReview], posted: Mapping[str, str]
) -> AssignedForm:
    """Return the form about an assigned reviewer, with what was posted if it is about this one."""
    data = posted if posted.get("assigned") == str(review.pk) else None
    initial = {"assigned": review, "due": review.due}
    return AssignedForm(assigned, data, initial=initial, auto_id=f"assigned_{review.pk}_%s")


def _change_assignment(
    request: UserRequest, submission: Submission, form: AssignedForm | None
) -> HttpResponse | None:
    """Set another day for an assigned reviewer, or end the assignment; return None where the date is wrong."""
    if form is None:
        messages.error(request, "Choose an assigned reviewer.")
        return redirect("reviews:assign", submission.pk)
    if not form.is_valid():
        return None
    review, due = form.cleaned_data["assigned"], form.cleaned_data["due"]
    try:
        if "remove" in request.POST:
            unassign(review, actor=request.user)
            done = f"{review.reviewer} is no longer assigned."
        else:
            assign(submission, review.reviewer, due, actor=request.user)
            done = f"{review.reviewer} is now asked to decide by {due:%b %-d, %Y}."
    except ValidationError as error:
        form.add_error(None, error)
        if form.has_error("due"):
            return None
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, done)
    return redirect("reviews:assign", submission.pk)


def _lift(request: UserRequest, submission: Submission) -> HttpResponse:
    """Let somebody review the proof again who stepped aside."""
    recusal = next((one for one in submission.recusals.all() if str(one.pk) == request.POST["lift"]), None)
    if recusal is not None:
        try:
            lift_recusal(recusal, actor=request.user)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            messages.success(request, f"{recusal.person} can review the proof again.")
    return redirect("reviews:assign", submission.pk)


@require_POST
@for_this_review
def take(request: UserRequest, submission: Submission, _: Conflicts) -> HttpResponse:
    """Assign the review to the visitor."""
    try:
        review = assign(submission, request.user, review_due(submission), actor=request.user)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(
            request, f"This review is now assigned to you. Please decide by {review.due:%b %-d, %Y}."
        )
    return redirect("reviews:desk", submission.pk)


def _own(submission: Submission, request: UserRequest) -> ProofReview | None:
    # Not from what was prefetched: a decision that can't be recorded has just been saved as a draft.
    return submission.reviews.filter(reviewer=request.user).first()


def _withdrawal_effect(own: ProofReview | None) -> str:
    return withdrawal_effect(own) if own and own.is_decided else ""


def _state(own: ProofReview | None, proof: Artifact | None, problem: str = "") -> dict[str, object]:
    """Return what the bar and the preview show: what is saved, and the problem with saving what isn't."""
    return {
        "draft": draft_of(own, version_of(proof)),
        "total": len(CHECKLIST),
        "drafted_at": own.drafted_at if own and own.draft is not None else None,
        "decided_at": own.decided_at if own else None,
        "problem": problem,
        "opinion_days": SECOND_OPINION_TIME.days,
    }


def _desk(
    request: UserRequest,
    submission: Submission,
    conflicts: Conflicts,
    own: ProofReview | None,
    form: ReviewForm | None,
    message_form: MessageForm | None = None,
) -> HttpResponse:
    """Return the desk, with this form or, for whoever hasn't stepped aside, one with their draft."""
    runs = statuses(submission.runs.all())
    proof = submission.proof()
    declined = conflicts.recusal(submission)
    written = draft_of(own, version_of(proof))
    if form is None and declined is None:
        form = ReviewForm(initial=initial_of(written))
    is_coordinator = declined is not None and declined.why == Recusal.Why.COORDINATION
    has_decided = own is not None and own.is_decided
    # One against the rejection of an earlier version isn't about this one.
    appeal = appeals().filter(submission=submission).exclude(state=AppealState.REVISED).first()
    is_appealed = appeal is not None and appeal.state == AppealState.OPEN
    found = verdict_on(submission)
    sees = is_coordinator or reads_decisions(found, own, has_appeal=is_appealed)
    threads = threads_for_reviewer(submission, request.user, sees_decisions=sees)
    table = facts_on(submission, runs, proof)
    sections = sections_by_question(sections_of(proof.upload)) if proof else {}
    context = {
        "submission": submission,
        "form": form,
        "places": form.places() if form and form.is_bound else [],
        "runs": runs,
        "unresolved_challenges": challenges_against(submission),
        "facts": table,
        "groups": form.groups(table, threads, written.earlier, sections) if form else [],
        "answers": ANSWERS,
        "max_note": MAX_NOTE,
        "chosen": request.POST.get("decision", written.decision),
        "decisions": DECISIONS,
        "general": next((thread.lines for thread in threads if not thread.item), []),
        "about_proof": f"Proof of {submission}",
        "is_insider": True,
        "proof": proof,
        "proof_url": reverse("reviews:proof", args=[submission.pk]),
        "named_code": named_code(proof.upload) if proof else None,
        "versions": submission.artifacts.filter(superseded_at__isnull=False).order_by("-version")
        if version_of(proof) > 1
        else [],
        "own": own,
        "has_decided": has_decided,
        "verdict": found if sees else None,
        # As the queue says, in which such a proof waits for its team.
        "awaits_revision": found.asks_changes and not has_decided,
        # That another decision is needed, every reviewer was asked by email.
        "needs_another": found.is_proposal or found.is_split,
        "opinion_due": opinions_due().get(submission.pk) if found.is_proposal else None,
        "timeline": timeline(submission, request.user) if sees else [],
        "earlier": None if sees or own is None else last_decision(own),
        "declined": declined,
        "coordinates": is_coordinator,
        "recusal_form": RecusalForm(auto_id="recusal_%s", effect=_withdrawal_effect(own)),
        "appeal": appeal,
        "may_assign": not assigning_barred_because(submission, request.user, conflicts)
        and not is_settled(submission),
        "own_conflicts": conflicts,
        "message_form": message_form or MessageForm(),
        "window": secrets.token_urlsafe(),
        "seen_draft": saved_at(own),
        **_state(own, proof),
    }
    has_errors = bool(form and form.errors) or (message_form is not None and bool(message_form.errors))
    return render(request, "reviews/desk.html", context, status=422 if has_errors else 200)
