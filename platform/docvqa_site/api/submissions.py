"""Submissions over the API: draft, runs, submit, status."""

from uuid import UUID

from django.utils import timezone
from ninja import Router

from docvqa_site.api.authentication import ApiRequest, team_in
from docvqa_site.api.errors import cleaned
from docvqa_site.api.ranks import Ranks
from docvqa_site.api.responses import response_of
from docvqa_site.api.throttling import CREATION_LIMITS
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.display import status as run_status
from docvqa_site.evaluation.models import Examination
from docvqa_site.evaluation.services import cancel as cancel_submission
from docvqa_site.paging import DEFAULT_LIMIT, ListLimit, ListOffset
from docvqa_site.submissions import publication, services
from docvqa_site.submissions.forms import RevisionForm, SubmissionForm, TextForm, WithdrawalForm
from docvqa_site.submissions.models import Run, Submission, SubmissionState
from docvqa_site.submissions.proof_consent import publish_or_not
from docvqa_site.submissions.proof_versions import send_revision
from docvqa_site.submissions.selectors import own_submission, quota_of, submissions_of
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.api import (
    ChangedText,
    ListedRun,
    NewRun,
    NewSubmission,
    ProofRevision,
    RunExamination,
    RunStatus,
    RunSummary,
    SubmissionPage,
    SubmissionStatus,
    SubmissionSummary,
    Submitting,
    Withdrawal,
)

router = Router(tags=["submissions"])


@router.get("", response=SubmissionPage, summary="List your team's submissions, newest first")
def list_submissions(
    request: ApiRequest, limit: ListLimit = DEFAULT_LIMIT, offset: ListOffset = 0
) -> SubmissionPage:
    """Returns `limit` drafts and submissions, including withdrawn ones, starting at `offset`."""
    found = submissions_of(team_in(request))
    # Whose reasons say why a run has no rank.
    shown = list(found.prefetch_related("reviews")[offset : offset + limit])
    ranks = Ranks.of_runs(run for submission in shown for run in submission.runs.all())
    return SubmissionPage(items=[_summary(request, ranks, one) for one in shown], count=found.count())


@router.post("", response={201: SubmissionStatus}, summary="Open a draft", throttle=CREATION_LIMITS)
def create_submission(request: ApiRequest, body: NewSubmission) -> SubmissionStatus:
    """In a track without privacy budgets, the draft already contains its single run."""
    team = team_in(request)
    track = Track.objects.get(slug=body.track)
    text = cleaned(SubmissionForm(body.model_dump(exclude={"track"})))
    submission = services.create_submission(team, request.auth, track, **text)
    return _detail(request, submission)


@router.get(
    "/{submission_id}", response=SubmissionStatus, summary="Get a submission and its evaluation status"
)
def get_submission(request: ApiRequest, submission_id: UUID) -> SubmissionStatus:
    return _detail(request, own_submission(team_in(request), submission_id))


@router.post("/{submission_id}/runs", response=RunSummary, summary="Add a run (at a privacy budget)")
def add_run(request: ApiRequest, submission_id: UUID, body: NewRun) -> RunSummary:
    """Returns the existing run at this budget, if any. `budget` is null in tracks without privacy budgets."""
    run = services.add_run(own_submission(team_in(request), submission_id), body.budget)
    return RunSummary.model_validate(run)


@router.post(
    "/{submission_id}/submit",
    response=SubmissionStatus,
    summary="Submit: freeze the draft and queue its runs",
)
def submit(request: ApiRequest, submission_id: UUID, body: Submitting | None = None) -> SubmissionStatus:
    """If anything is missing, the response lists everything that is, and no quota slot is used.

    If the track specifies a license for submissions, the body must name it.
    """
    submission = own_submission(team_in(request), submission_id)
    services.submit(submission, request.auth, accepted_license=body.license if body else "")
    return get_submission(request, submission_id)


@router.patch("/{submission_id}", response=SubmissionStatus, summary="Edit description, links and visibility")
def edit(request: ApiRequest, submission_id: UUID, body: ChangedText) -> SubmissionStatus:
    """Possible until the submission is withdrawn. Its page shows the last edit's date. The title can't be changed."""
    submission = own_submission(team_in(request), submission_id)
    changes = body.model_dump(exclude_none=True, exclude={"publishes_proof"})
    is_draft = submission.state == SubmissionState.DRAFT
    if (frozen := changes.keys() - set(services.EDITABLE)) and not is_draft:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="The title and the visibility of a submitted submission can't be changed, because results and "
            "citations refer to them.",
            where=", ".join(sorted(frozen)),
            next_step="Leave these fields out; description and links can be changed.",
        )
    kind = SubmissionForm if is_draft else TextForm
    form = kind({name: getattr(submission, name) for name in kind.Meta.fields} | changes)
    services.describe(submission, cleaned(form), request.auth)
    if body.publishes_proof is not None:
        publish_or_not(submission, body.publishes_proof, request.auth)
    return get_submission(request, submission_id)


@router.post(
    "/{submission_id}/copy",
    response={201: SubmissionStatus},
    summary="Copy this submission's text and files into a new draft",
    throttle=CREATION_LIMITS,
)
def copy(request: ApiRequest, submission_id: UUID) -> SubmissionStatus:
    """Nothing is uploaded again; you can replace individual files in the draft."""
    draft = services.copy_to_draft(own_submission(team_in(request), submission_id), request.auth)
    return get_submission(request, draft.pk)


@router.post(
    "/{submission_id}/cancel", response=SubmissionStatus, summary="Cancel a submission that is still waiting"
)
def cancel(request: ApiRequest, submission_id: UUID) -> SubmissionStatus:
    """Possible until the first run starts. The quota slot is returned."""
    cancel_submission(own_submission(team_in(request), submission_id), actor=request.auth)
    return get_submission(request, submission_id)


@router.post("/{submission_id}/publish", response=SubmissionStatus, summary="Publish a submission")
def publish(request: ApiRequest, submission_id: UUID) -> SubmissionStatus:
    """This can't be undone, and isn't possible while the phase keeps results private."""
    publication.publish(own_submission(team_in(request), submission_id), request.auth)
    return get_submission(request, submission_id)


@router.post(
    "/{submission_id}/name", response=SubmissionStatus, summary="Reveal the team of an anonymous submission"
)
def give_name(request: ApiRequest, submission_id: UUID) -> SubmissionStatus:
    """This can't be undone. The description and links also become public."""
    publication.give_name(own_submission(team_in(request), submission_id), request.auth)
    return get_submission(request, submission_id)


@router.post("/{submission_id}/revision", response=SubmissionStatus, summary="Send a revised proof")
def send_proof(request: ApiRequest, submission_id: UUID, body: ProofRevision) -> SubmissionStatus:
    """Restarts the review with the revised proof that was uploaded last. Its note says what changed."""
    note = cleaned(RevisionForm(body.model_dump()))["note"]
    send_revision(own_submission(team_in(request), submission_id), note, request.auth)
    return get_submission(request, submission_id)


@router.post(
    "/{submission_id}/withdraw", response=SubmissionStatus, summary="Withdraw a submission or discard a draft"
)
def withdraw(request: ApiRequest, submission_id: UUID, body: Withdrawal | None = None) -> SubmissionStatus:
    """This can't be undone. Only an owner can withdraw a submission, which still counts against the quota.

    If the submission was public, its page will say that it was withdrawn, with the reason if given.
    """
    reason = cleaned(WithdrawalForm(body.model_dump() if body else {}))["reason"]
    services.withdraw(own_submission(team_in(request), submission_id), request.auth, reason)
    return get_submission(request, submission_id)


@router.delete("/{submission_id}/runs/{run_id}", response={204: None}, summary="Remove a run from a draft")
def remove_run(request: ApiRequest, submission_id: UUID, run_id: UUID) -> None:
    """This also deletes the run's files."""
    services.remove_run(own_submission(team_in(request), submission_id).runs.get(pk=run_id), request.auth)


def _summary(request: ApiRequest, ranks: Ranks, submission: Submission) -> SubmissionSummary:
    return response_of(
        SubmissionSummary,
        submission,
        **_places(request, submission),
        runs=[_listed(run, ranks) for run in submission.runs.all()],
    )


def _listed(run: Run, ranks: Ranks) -> ListedRun:
    return response_of(
        ListedRun,
        run,
        anls=run.results.anls if run.scored_at else None,
        decimals=run.results.decimals,
        rank=ranks.of(run),
        ranked=ranks.ranked(run),
        possible_ranks=ranks.possible_ranks(run),
        status=ranks.status(run),
        bytes_total=run.results.bytes_total if run.scored_at else None,
        unranked_because=ranks.unranked_because(run),
    )


def _detail(request: ApiRequest, submission: Submission) -> SubmissionStatus:
    runs = submission.runs.all()
    ranks = Ranks.of_runs(runs)
    return response_of(
        SubmissionStatus,
        submission,
        **_places(request, submission),
        quota=quota_of(submission.team, submission.track, timezone.now(), practice=submission.practice),
        runs=[_status(status, ranks) for status in run_status.statuses(runs)],
    )


def _places(request: ApiRequest, submission: Submission) -> dict[str, str | None]:
    """Return where the submission is: its page, its track and its phase."""
    return {
        "url": request.build_absolute_uri(submission.get_absolute_url()),
        "track": submission.track.slug,
        "phase": submission.phase.name if submission.phase else None,
    }


def _status(status: run_status.RunStatus, ranks: Ranks) -> RunStatus:
    run, changed = status.run, status.changed_tensors
    return response_of(
        RunStatus,
        status,
        id=run.pk,
        budget=run.budget,
        state=run.state,
        rank=ranks.of(run),
        ranked=ranks.ranked(run),
        possible_ranks=ranks.possible_ranks(run),
        status=ranks.status(run),
        unranked_because=ranks.explained(run),
        results=run.results,
        examinations=[_examination(one) for one in status.examinations],
        tensors=changed.tensors if changed else None,
        changed_tensors=changed.names if changed else None,
    )


def _examination(one: Examination) -> RunExamination:
    return response_of(
        RunExamination,
        one,
        level=one.trust_level,
        command=one.found.findings.kind,
        by=one.examiner,
        at=one.ended_at,
        summary=one.found.in_words,
        report=one.found.for_team,
    )
