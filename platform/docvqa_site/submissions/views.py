"""The pages on which a team prepares its submissions. Other teams' submissions answer 404."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial, wraps
from typing import TypeVar
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import Track
from docvqa_site.periods import PERIODS
from docvqa_site.submissions import publication, services
from docvqa_site.submissions.claims import claims_above_budget
from docvqa_site.submissions.code import names_commit
from docvqa_site.submissions.draft_files import files_of, place_of_file, place_of_run
from docvqa_site.submissions.draft_problems import to_dos_of
from docvqa_site.submissions.draft_progress import draft_steps
from docvqa_site.submissions.duplicates import records_submitted_before
from docvqa_site.submissions.forms import (
    DraftForm,
    ExplanationForm,
    NewSubmissionForm,
    TextForm,
    WithdrawalForm,
)
from docvqa_site.submissions.models import Run, RunToken, Submission, SubmissionState
from docvqa_site.submissions.proof_consent import publish_or_not
from docvqa_site.submissions.removal import withdrawal_warning
from docvqa_site.submissions.selectors import (
    has_unused_token,
    next_challenge,
    quota_of,
    submissions_of,
    token_counts,
    tokens_of,
    visible_submissions,
)
from docvqa_site.submissions.token_fates import fates_of
from docvqa_site.submissions.tokens import release_token as release
from docvqa_site.submissions.unresolved_challenges import challenges_against, explain, unresolved_challenges
from docvqa_site.teams.models import Membership, Role
from docvqa_site.teams.selectors import current_keys, membership_of, team_of
from docvqa_site.ui.budgets import at_budget
from docvqa_site.uploads.storage import storage_of
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.run_files import RUN_FILES

Result = TypeVar("Result")

# The name of the field by which a team agrees that its proof becomes public.
PUBLISH = "publish_proof"
TOKENS_OF_A_PAGE = 50
# In the address of a draft's page: the attempt to submit it has failed.
NOT_SUBMITTED = "not-submitted"
# A draft's page has notices of these, whether or not anything else is missing.
HAVE_NOTICES = (ErrorCode.TRACK_CLOSED, ErrorCode.SUBMISSION_QUOTA)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: UserRequest) -> HttpResponse:
    """Open a draft: choose a track and describe the method; the draft's page takes the files."""
    team = team_of(request.user)
    if team is None:
        return render(request, "submissions/no_team.html")
    track = Track.objects.filter(slug=request.GET.get("track", "")).first()
    form = NewSubmissionForm(request.POST or None, initial={"track": track})
    problems = []
    if request.method == "POST" and form.is_valid() and not _wants_preview(request):
        try:
            draft = services.create_submission(team, request.user, **form.cleaned_data)
            messages.success(request, "The draft is created. Upload its files next.")
            return redirect(draft)
        except ProblemError as error:
            problems = error.problems
    tracks = Track.objects.prefetch_related("phases")
    closed = [track for track in tracks if track.closed_because()]
    context = {"form": form, "problems": problems, "closed": closed, "preview": _preview(request, form)}
    return render(request, "submissions/create.html", context, status=409 if problems else 200)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Change the description of a method and its links, and the title as long as it is a draft."""
    submission = own_or_404(request, submission_id)
    if submission.state == SubmissionState.WITHDRAWN:
        return redirect(submission)
    kind = DraftForm if submission.state == SubmissionState.DRAFT else TextForm
    # An invalid form changes its instance too, and the page shows the title as it is stored.
    form = kind(request.POST or None, instance=own_or_404(request, submission_id))
    if request.method == "POST" and form.is_valid() and not _wants_preview(request):
        attempt(request, lambda: services.describe(submission, form.cleaned_data, request.user), "Saved.")
        return redirect(submission)
    context = {"submission": submission, "form": form, "preview": _preview(request, form)}
    return render(request, "submissions/edit.html", context)


def _wants_preview(request: HttpRequest) -> bool:
    return "preview" in request.POST


def _preview(request: HttpRequest, form: TextForm) -> str | None:
    """Return the description to show as it would be read; None where that isn't asked for."""
    if not _wants_preview(request):
        return None
    # Of an invalid form only what is valid; one that is too long is named in its error instead.
    form.is_valid()
    return form.cleaned_data.get("description")


def attempt(
    request: HttpRequest, action: Callable[[], Result], done: str = "", place: str = ""
) -> Result | None:
    """Do what a button asks for, and say on the next page that it is done, or what is wrong and what to do next.

    `place` is the part of the next page that says that it is done; without one, the page begins with it.
    Return what the action has returned; None where something is wrong.
    """
    try:
        result = action()
    except ProblemError as error:
        messages.error(request, f"{error.problem.message} {error.problem.next_step}".strip())
        return None
    if done:
        messages.success(request, done, extra_tags=place)
    return result


def team_action(view: Callable[..., HttpResponse | None]) -> Callable[..., HttpResponse]:
    """Make the view of a button on the page of a team's submission, which it gets in place of its id.

    It leads back to that page, unless it returns a response of its own. Other teams' submissions answer 404.
    """

    @login_required
    @require_POST
    @wraps(view)
    def act(request: UserRequest, submission_id: UUID, **others: UUID | int) -> HttpResponse:
        submission = own_or_404(request, submission_id)
        return view(request, submission, **others) or redirect(submission)

    return act


@team_action
def copy(request: UserRequest, submission: Submission) -> HttpResponse | None:
    """Open a draft with the text and the files of what was submitted."""
    done = "This draft has the same text and files. Change what you want, and submit it."
    draft = attempt(request, lambda: services.copy_to_draft(submission, request.user), done)
    return redirect(draft) if draft else None


@team_action
def add_run(request: UserRequest, submission: Submission) -> HttpResponse | None:
    try:
        budget = float(request.POST.get("budget", ""))
    except ValueError:
        budget = None
    done = f"The run{at_budget(budget)} was added."
    run = attempt(request, lambda: services.add_run(submission, budget), done, place_of_run(budget))
    return _to_run(run) if run else None


@team_action
def remove_run(request: UserRequest, submission: Submission, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(submission.runs, pk=run_id)
    done = f"The run{at_budget(run.budget)} and its files were removed."
    attempt(request, lambda: services.remove_run(run, request.user), done, place_of_run(run.budget))
    return _to_run(run)


@team_action
def remove_file(request: UserRequest, submission: Submission, artifact_id: UUID) -> HttpResponse:
    artifact = get_object_or_404(submission.artifacts.select_related("upload", "run"), pk=artifact_id)
    place = place_of_file(artifact.run, artifact.kind)
    done = f"{artifact.upload.filename} was removed."
    attempt(request, lambda: services.remove_file(artifact, request.user), done, place)
    return redirect(f"{submission.get_absolute_url()}#{place}")


def _to_run(run: Run) -> HttpResponse:
    """Lead to the place of a run on the draft's page, of which the heading takes the focus."""
    return redirect(f"{run.submission.get_absolute_url()}#{place_of_run(run.budget)}")


@team_action
def submit(request: UserRequest, submission: Submission) -> HttpResponse | None:
    if submission.state != SubmissionState.DRAFT:
        attempt(request, lambda: services.submit(submission, request.user))
        return None
    publish_or_not(submission, PUBLISH in request.POST, request.user)
    try:
        services.submit(submission, request.user, accepted_license=request.POST.get("license", ""))
    except ProblemError as error:
        if error.problem.code == ErrorCode.SUBMISSION_LICENSE:
            messages.error(request, f"Not submitted. {error.problem.message} Check the box above the button.")
            return None
        # The page of the draft finds the same problems; at this address a reload would submit again. What it says of
        # them takes the focus, which an anchor in the address would prevent.
        return redirect(f"{submission.get_absolute_url()}?{NOT_SUBMITTED}")
    quota = quota_of(submission.team, submission.track, timezone.now(), practice=submission.practice)
    kind = "practice submissions" if submission.practice else "submissions"
    messages.success(request, f"Submitted. {quota.used} of {quota.limit} {kind} used in the past 24 hours.")
    return None


@team_action
def publish_proof(request: UserRequest, submission: Submission) -> None:
    """Agree that the privacy proof is public while it is accepted, or take that back."""
    attempt(request, lambda: publish_or_not(submission, PUBLISH in request.POST, request.user), "Saved.")


@team_action
def withdraw(request: UserRequest, submission: Submission) -> HttpResponse | None:
    """Withdraw a submission, or delete a draft."""
    form = WithdrawalForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Not withdrawn. The reason: {' '.join(map(str, form.errors['reason']))}")
        return None
    verb = "discarded" if submission.state == SubmissionState.DRAFT else "withdrawn"
    done = f"“{submission.title}” was {verb}."
    attempt(request, lambda: services.withdraw(submission, request.user, form.cleaned_data["reason"]), done)
    return redirect("submissions:list")


@login_required
@require_POST
def discard_drafts(request: UserRequest) -> HttpResponse:
    """Discard the drafts of the team that were selected."""
    chosen = set(request.POST.getlist("draft"))
    drafts = submissions_of(team_of(request.user)).filter(state=SubmissionState.DRAFT)
    selected = [draft for draft in drafts if str(draft.pk) in chosen]
    for draft in selected:
        attempt(request, partial(services.withdraw, draft, request.user), f"“{draft}” is discarded.")
    if not selected:
        messages.warning(request, "Nothing was discarded: select at least one draft.")
    return redirect("submissions:list")


@team_action
def publish(request: UserRequest, submission: Submission) -> None:
    done = f"“{submission.title}” is public."
    attempt(request, lambda: publication.publish(submission, request.user), done)


@team_action
def give_name(request: UserRequest, submission: Submission) -> None:
    """Name the team of an anonymous submission."""
    done = f"“{submission.title}” names your team."
    attempt(request, lambda: publication.give_name(submission, request.user), done)


@team_action
def explain_challenge(request: UserRequest, submission: Submission, token_id: int) -> None:
    """Store what the team says about an unresolved challenge in the submission's track."""
    _explain(
        request, get_object_or_404(unresolved_challenges(submission.team, submission.track), pk=token_id)
    )


@login_required
@require_safe
def tokens(request: UserRequest) -> HttpResponse:
    """List all run tokens of the team, and what happened to each."""
    team = team_of(request.user)
    if team is None:
        return render(request, "submissions/no_team.html")
    page = Paginator(tokens_of(team), TOKENS_OF_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "team": team,
        "page": page,
        "fates": fates_of(page.object_list),
        "token_counts": token_counts(team),
    }
    return render(request, "submissions/all_tokens.html", context)


@login_required
@require_POST
def explain_token(request: UserRequest, token_id: int) -> HttpResponse:
    """Store what the team says about one of its unresolved challenges. Other teams' tokens answer 404."""
    team = team_of(request.user)
    own = tokens_of(team) if team else RunToken.objects.none()
    _explain(request, get_object_or_404(own, pk=token_id))
    return redirect("submissions:tokens")


@login_required
@require_POST
def release_token(request: UserRequest, token_id: int) -> HttpResponse:
    """Free a token of a training that was stopped. Other teams' tokens answer 404."""
    team = team_of(request.user)
    own = tokens_of(team) if team else RunToken.objects.none()
    token = get_object_or_404(own, pk=token_id)
    done = "The token is free. Your next pfl train takes it."
    attempt(request, lambda: release(token, request.user), done)
    return redirect("submissions:tokens")


def _explain(request: UserRequest, token: RunToken) -> None:
    form = ExplanationForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Not saved. {' '.join(map(str, form.errors['explanation']))}")
        return
    text = form.cleaned_data["explanation"]
    done = "Your explanation is saved. Reviewers can read it."
    attempt(request, lambda: explain(token, text, request.user), done)


def shown_submission(request: HttpRequest, submission_id: UUID) -> Submission:
    """Return the submission if the visitor may see it. Raises `Http404` otherwise."""
    return get_object_or_404(visible_submissions(request.user).distinct(), pk=submission_id)


def own_or_404(request: UserRequest, submission_id: UUID) -> Submission:
    """Return the submission of the visitor's team. Raises `Http404` for all others."""
    return get_object_or_404(submissions_of(team_of(request.user)), pk=submission_id)


def own_membership(request: HttpRequest, submission: Submission) -> Membership | None:
    """Return the visitor's membership in the submission's team; None where they are in no team or another one."""
    membership = membership_of(request.user) if request.user.is_authenticated else None
    return membership if membership and membership.team_id == submission.team_id else None


def may_withdraw(submission: Submission, membership: Membership | None) -> bool:
    """Return whether who has this membership in the submission's team may withdraw what has been submitted."""
    is_owner = membership is not None and membership.role == Role.OWNER
    return is_owner and submission.state == SubmissionState.SUBMITTED


def draft_page(
    request: HttpRequest, submission: Submission, rejected_before: Sequence[object] = ()
) -> HttpResponse:
    """Return the page on which the team fills its draft; after a failed attempt to submit it says what is wrong.

    `rejected_before` has the runs whose files were rejected in another submission, each with its problems.
    """
    now = timezone.now()
    team, track = submission.team, submission.track
    boards, proofs = files_of(submission, now)
    to_dos = to_dos_of(submission, now)
    problems = [one.problem for one in to_dos]
    context = {
        "submission": submission,
        "boards": boards,
        "lacks_rank": any(board.lacks_rank for board in boards),
        "withdrawal_warning": withdrawal_warning(submission),
        "proofs": proofs,
        "record_name": RUN_FILES[ArtifactKind.TRAINING_RECORD],
        "problems": problems,
        "to_dos": to_dos,
        "to_do": [one for one in to_dos if one.problem.code not in HAVE_NOTICES],
        "progress": draft_steps(submission, boards, proofs, to_dos),
        "was_rejected": NOT_SUBMITTED in request.GET,
        "rejected_before": rejected_before,
        "closed_because": track.closed_because(now),
        "phase": track.nearest_phase(now),
        "quota": quota_of(team, track, now, practice=submission.practice),
        "storage": storage_of(team),
        "license": services.license_of(submission),
        "draft_days": PERIODS["drafts"].days,
        "code_may_change": bool(submission.code_url) and not names_commit(submission.code_url),
        **(_record_needs(submission, now) if track.kind.is_accounted else {}),
    }
    return render(request, "submissions/draft.html", context)


def _record_needs(submission: Submission, now: datetime) -> dict[str, object]:
    """Return what the team lacks for the training records of its runs, and its unresolved challenges."""
    team, track = submission.team, submission.track
    has_record = submission.artifacts.filter(kind=ArtifactKind.TRAINING_RECORD).exists()
    return {
        "needs_key": not current_keys(team).exists(),
        "needs_token": not has_record and not has_unused_token(team, track),
        "next_challenge": next_challenge(team, track, now),
        "unresolved_challenges": challenges_against(submission).filter(team=team),
        "claims_above_budget": claims_above_budget(submission),
        "repeated_records": () if submission.practice else records_submitted_before(submission),
    }
