"""One run with everything that an organizer may do to it, its examinations included.

Every action is a POST from a page that says what it does.
"""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.audit.models import AuditEntry
from docvqa_site.audit.transitions import IllegalTransitionError
from docvqa_site.boards.corrections import corrections, published_places
from docvqa_site.boards.models import newest_results
from docvqa_site.boards.standings import rank_in_words, standings_of
from docvqa_site.challenge.rankings import DISQUALIFIED, WITH_PROOFS
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.display.results import shortfall, shown_checks, tally
from docvqa_site.evaluation.examining import requests
from docvqa_site.evaluation.examining.files import in_words, missing
from docvqa_site.evaluation.examining.levels import LEVELS
from docvqa_site.evaluation.intake.near_copies import near_copies_of
from docvqa_site.evaluation.models import ExaminationState
from docvqa_site.evaluation.services import evaluate_again
from docvqa_site.organizers.access import POST, for_organizers
from docvqa_site.organizers.forms import AnswerForm, DisqualificationForm, ExaminationForm, LiftForm
from docvqa_site.reviews import run_appeals
from docvqa_site.reviews.admin import STATES
from docvqa_site.reviews.selectors import assignments, judgeable_submissions, verdict_of_counts
from docvqa_site.submissions.models import RUN_STATES, Run, RunState, Submission
from docvqa_site.submissions.selectors import competed_tracks
from docvqa_site.submissions.services import accept_log, disqualify, mark_baseline, refund
from docvqa_site.ui.paging import page_of
from evaluator.errors import ProblemError
from evaluator.messages.jobs import CheckStatus, TrustLevel

PAGE_LENGTH = 50
DOUBTFUL = {CheckStatus.FLAGGED, CheckStatus.FAILED}
UNCONFIRMED = "Nothing was changed: please tick the box to confirm."


@for_organizers("submissions.view_submission")
def runs(request: UserRequest) -> HttpResponseBase:
    """List the runs, the newest first, by track, state, state of the proof, text and flagged checks."""
    chosen = {name: request.GET.get(name, "") for name in ("track", "state", "proof", "text", "flagged")}
    found = _judged_runs(request.user)
    if chosen["track"]:
        found = found.filter(submission__track__slug=chosen["track"])
    if chosen["state"] == DISQUALIFIED:
        found = found.exclude(disqualified_because="")
    elif chosen["state"]:
        found = found.filter(state=chosen["state"], disqualified_because="")
    if proof := STATES.get(chosen["proof"]):
        of_state = Submission.objects.filter(proof[1](), track__ranking__in=WITH_PROOFS, practice=False)
        found = found.filter(submission__in=of_state, scored_at__isnull=False)
    if chosen["flagged"]:
        found = found.filter(flagged_checks__gt=0)
    if text := chosen["text"]:
        found = found.filter(Q(submission__title__icontains=text) | Q(submission__team__name__icontains=text))
    newest_first = found.order_by("-submission__submitted_at", "submission", "budget")
    query = request.GET.copy()
    query.pop("page", None)
    page = page_of(newest_first, PAGE_LENGTH, request.GET.get("page"))
    standings = standings_of(page)
    tracks = organized_tracks(request.user).filter(is_draft=False)
    context = {
        "page": page,
        "rows": [(one, standings.get(one.pk), _review_of(one)) for one in page],
        "chosen": chosen,
        "competed": competed_tracks(request.user),
        "tracks": tracks,
        "proofs": [(key, words) for key, (words, _) in STATES.items()]
        if any(track.reviews_needed is not None for track in tracks)
        else [],
        "states": [
            *(state for state in RUN_STATES if state[0] != RunState.DRAFT),
            (DISQUALIFIED, DISQUALIFIED),
        ],
        "query": query.urlencode() + "&" if query else "",
    }
    return render(request, "organizers/runs.html", context)


@for_organizers("submissions.view_submission")
def run(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    found = _judged_run(request.user, run_id)
    return _page(request, found, LiftForm() if found.disqualified_because else DisqualificationForm())


@for_organizers("evaluation.change_evaluation", methods=POST)
def evaluate(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Queue the run again."""
    found = _judged_run(request.user, run_id)
    if request.POST.get("confirmed") != "yes":
        return _back(request, run_id, UNCONFIRMED, messages.WARNING)
    try:
        evaluate_again(found, actor=request.user, reason=request.POST.get("reason", "").strip()[:300])
    except IllegalTransitionError:
        return _back(request, run_id, "The evaluation is still in progress.", messages.WARNING)
    except ProblemError as error:
        return _back(request, run_id, f"{error.problem.message} {error.problem.found}", messages.ERROR)
    return _back(request, run_id, "The run has been queued again.")


@for_organizers("submissions.change_submission", methods=POST)
def disqualify_run(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Take the run's rank for a public reason."""
    found, form = _judged_run(request.user, run_id), DisqualificationForm(request.POST)
    if found.disqualified_because:
        return _back(request, run_id, "The run is already disqualified.", messages.WARNING)
    if not form.is_valid():
        return _page(request, found, form, status=422)
    disqualify(found, form.cleaned_data["reason"], request.user)
    text = "The run has been disqualified. The reason is public."
    if published_places(found):
        text += " Published final results that contain it stay as they are."
    return _back(request, run_id, text)


@for_organizers("submissions.change_submission", methods=POST)
def requalify_run(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Give the run its rank back, for a public reason."""
    found, form = _judged_run(request.user, run_id), LiftForm(request.POST)
    if not found.disqualified_because:
        return _back(request, run_id, "The run isn't disqualified.", messages.WARNING)
    if not form.is_valid():
        return _page(request, found, form, status=422)
    run_appeals.lift(found, actor=request.user, reason=form.cleaned_data["reason"])
    return _back(request, run_id, "The run is no longer disqualified. The reason is public.")


@for_organizers("submissions.change_submission", methods=POST)
def accept(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Accept the declared log of the run in spite of its flag, which gives it its rank."""
    found = _judged_run(request.user, run_id)
    if not found.results.log_flag:
        return _back(request, run_id, "No check of the log flagged the run.", messages.WARNING)
    accept_log(found, request.user, request.POST.get("reason", "").strip()[:300])
    return _back(request, run_id, "The log has been accepted. It no longer keeps the run from a rank.")


@for_organizers("submissions.change_submission", methods=POST)
def answer_appeal(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Answer the team's appeal, and let the disqualification stand."""
    found, form = _judged_run(request.user, run_id), AnswerForm(request.POST)
    pending = found.appeals.filter(answered_at__isnull=True).first()
    if pending is None:
        return _back(request, run_id, "There is no appeal to answer.", messages.WARNING)
    if not form.is_valid():
        return _back(request, run_id, "Write an answer for the team.", messages.ERROR)
    run_appeals.answer(pending, form.cleaned_data["answer"], actor=request.user)
    return _back(request, run_id, "The team is notified of your answer. The disqualification stands.")


@for_organizers("submissions.change_submission", methods=POST)
def refund_slot(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Give the quota slot of the run's submission back, once."""
    submission = _judged_run(request.user, run_id).submission
    if request.POST.get("confirmed") != "yes":
        return _back(request, run_id, UNCONFIRMED, messages.WARNING)
    if submission.refunded_at is not None:
        return _back(request, run_id, "The slot was already restored.", messages.WARNING)
    refund(submission, actor=request.user, reason=request.POST.get("reason", "").strip()[:300])
    return _back(request, run_id, "The quota slot has been restored.")


@for_organizers("submissions.change_submission", methods=POST)
def mark(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Mark the run's submission as the organizers' baseline, or take the mark away."""
    submission = _judged_run(request.user, run_id).submission
    marked = request.POST.get("is_baseline") == "yes"
    if marked and request.POST.get("confirmed") != "yes":
        return _back(request, run_id, UNCONFIRMED, messages.WARNING)
    mark_baseline(submission, marked, request.user)
    text = (
        "The method is now marked as a baseline."
        if marked
        else "The method is no longer marked as a baseline."
    )
    return _back(request, run_id, text)


@for_organizers("evaluation.add_examination", methods=POST)
def examine(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    found, form = _judged_run(request.user, run_id), ExaminationForm(request.POST)
    if not form.is_valid():
        return _back(request, run_id, "Choose a level to request an examination.", messages.ERROR)
    try:
        level, reason = TrustLevel(form.cleaned_data["level"]), form.cleaned_data["reason"]
        requests.request(found, level, by=request.user, reason=reason)
    except ProblemError as error:
        return _back(request, run_id, str(error.problem), messages.ERROR)
    if requests.has_machine():
        return _back(request, run_id, "The examination is requested. A machine for examinations is running.")
    text = "The examination is requested, but no machine for examinations is running."
    return _back(request, run_id, text, messages.WARNING)


@for_organizers("evaluation.add_examination", methods=POST)
def cancel(request: UserRequest, run_id: UUID, examination_id: int) -> HttpResponseBase:
    """End an examination of the run that waits or runs."""
    examination = get_object_or_404(_judged_run(request.user, run_id).examinations, pk=examination_id)
    try:
        requests.cancel(examination, actor=request.user)
    except requests.EndedError:
        return _back(request, run_id, "The examination has already ended.", messages.WARNING)
    return _back(request, run_id, "The examination was canceled.")


@for_organizers("submissions.view_submission")
def examinations(request: UserRequest, run_id: UUID) -> HttpResponseBase:
    """Show the part of the run's page that is requested again and again while an examination waits or runs."""
    found = _judged_run(request.user, run_id)
    return render(request, "organizers/examinations.html", {"run": found, **_examinations(found)})


def _examinations(run: Run) -> dict[str, Any]:
    rows = list(run.examinations.select_related("by"))
    active = next((one for one in rows if one.is_active), None)
    return {
        "examinations": rows,
        "active": active,
        "has_machine": (has_machine := requests.has_machine()),
        "is_unattended": active is not None
        and (
            active in requests.unattended(clock.now())
            or (active.state == ExaminationState.QUEUED and not has_machine)
        ),
        "levels": [
            (level, [in_words(kind) for kind in missing(run, level.required)]) for level in LEVELS.values()
        ],
    }


def _judged_runs(organizer: User) -> QuerySet[Run]:
    found = Run.objects.filter(submission__in=judgeable_submissions(organizer))
    return found.select_related("submission__team", "submission__track", "submission__phase")


def _judged_run(organizer: User, run_id: UUID) -> Run:
    """Return the run. Raises `Http404` unless the organizer may decide on it."""
    return get_object_or_404(_judged_runs(organizer), pk=run_id)


def _review_of(run: Run) -> str:
    """Return what the board says of the proof of a scored run, such as "under review"; empty without a proof."""
    is_reviewed = run.submission.track.reviews_needed and run.scored_at and not run.submission.practice
    return verdict_of_counts(run.submission).status.label if is_reviewed else ""


def _back(request: UserRequest, run_id: UUID, text: str, level: int = messages.SUCCESS) -> HttpResponseBase:
    """Lead to the page of the run, where the text is shown."""
    messages.add_message(request, level, text)
    return redirect("organizers:run", run_id)


def _page(
    request: UserRequest, found: Run, form: DisqualificationForm | LiftForm, status: int = 200
) -> HttpResponseBase:
    submission, judged = found.submission, judgeable_submissions(request.user)
    about = Q(object_type="submissions.run", object_id=str(found.pk))
    about |= Q(object_type="submissions.submission", object_id=str(submission.pk))
    examined, shown = _examinations(found), shown_checks(found)
    numbers = [str(examination.pk) for examination in examined["examinations"]]
    about |= Q(object_type="evaluation.examination", object_id__in=numbers)
    context: dict[str, Any] = {
        "run": found,
        "submission": submission,
        "form": form,
        "appeal": found.appeals.last(),
        "answer_form": AnswerForm(),
        "rank": rank_in_words(found),
        "published": published_places(found),
        "to_correct": corrections(newest_results().filter(phase=submission.phase_id)),
        "review": _review_of(found),
        "assigned": assignments().filter(submission=submission).select_related("reviewer"),
        "reviews_proofs": is_reviewer(request.user),
        "checks": tally([one.check for one in shown]),
        "flagged": [one for one in shown if one.check.status in DOUBTFUL],
        "unranked": shortfall(found) if found.scored_at or found.disqualified_because else "",
        "entries": AuditEntry.objects.filter(about).select_related("actor")[:PAGE_LENGTH],
        "near_copies": near_copies_of(found, judged),
        "log_check": next((one for one in shown if one.check.id == found.results.log_flag), None),
        **examined,
        "is_over": found.state in {RunState.SCORED, RunState.REJECTED, RunState.FAILED},
    }
    return render(request, "organizers/run.html", context, status=status)
