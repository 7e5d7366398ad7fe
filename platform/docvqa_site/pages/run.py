"""The evidence for one run, on a page of its own: its checks, ε, traffic, signature and provenance."""

from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from docvqa_site.evaluation.display.results import shown_checks, summaries
from docvqa_site.evaluation.display.status import RunStatus
from docvqa_site.evaluation.views import status_context
from docvqa_site.pages.citing import bibtex, cited_people, evaluated_by
from docvqa_site.pages.evidence import public_files
from docvqa_site.pages.method import MethodRun, is_listed, method_runs
from docvqa_site.reviews.selectors import may_open_desk, may_organize, verdict_on
from docvqa_site.reviews.verdict import Verdict
from docvqa_site.submissions.lifted import lifting_of
from docvqa_site.submissions.models import RunToken, Submission
from docvqa_site.submissions.views import own_membership, shown_submission
from docvqa_site.teams.models import fingerprint
from evaluator.messages.jobs import ArtifactKind, CheckStatus, Step

FINDINGS = (CheckStatus.FAILED, CheckStatus.FLAGGED)


@require_safe
def run(request: HttpRequest, submission_id: UUID, run_id: UUID) -> HttpResponse:
    """Show the evidence to everyone who sees the run, but not that for an anonymous team, which it could identify."""
    submission = shown_submission(request, submission_id)
    status = status_context(request, submission)
    if submission.anonymous and not status["is_insider"]:
        raise Http404
    with_evidence = [one for one in status["statuses"] if one.has_evidence]
    shown = next((one for one in with_evidence if one.run.pk == run_id), None)
    if shown is None:
        raise Http404
    files = list(public_files(submission_id, run_id))
    kinds = {file.kind for file in files}
    checks = shown_checks(shown.run, kinds)
    verdict = verdict_on(submission)
    context = {
        "submission": submission,
        "run": shown.run,
        "results": shown.run.results,
        "lifting": lifting_of(shown.run),
        "status": shown,
        "verdict": verdict,
        "one": _ranked(request, submission, shown, verdict),
        "others": [one.run for one in with_evidence],
        "is_insider": status["is_insider"],
        "may_organize": may_organize(request.user, submission),
        "may_review": may_open_desk(request.user, submission),
        "examinations": shown.examinations if status["is_insider"] else shown.passed_examinations,
        "traffic": _result(shown, Step.COMMUNICATION),
        "signed_by": _signed_by(shown),
        "files": files,
        "checks": checks,
        "summaries": summaries(checks),
        "has_findings": any(one.check.status in FINDINGS for one in checks),
        "still_false": _still_false(shown),
        "is_explained": request.GET.get("explain") == "1",
        "has_restricted": not all(check.is_public for check in checks),
        "accounted": max(accounted_runs(submission), shown.run.results.joint_runs or 0),
        "record_is_public": ArtifactKind.TRAINING_RECORD in kinds,
        "bibtex": bibtex(submission, cited_people(submission), evaluated_by(submission), shown.run)
        if shown.run.scored_at and is_listed(submission)
        else "",
        "permalink": settings.SITE_URL + request.path,
    }
    return render(request, "pages/run.html", context)


def _ranked(
    request: HttpRequest, submission: Submission, shown: RunStatus, verdict: Verdict
) -> MethodRun | None:
    """Return the run with its rank; None if it isn't scored."""
    scored = [shown] if shown.run.scored_at else []
    is_own = own_membership(request, submission) is not None
    return next(iter(method_runs(submission, scored, verdict, names_team=True, is_own=is_own)), None)


def accounted_runs(submission: Submission) -> int:
    """Return how many training runs of the submission's team in its track were accounted."""
    tokens = RunToken.objects.filter(team=submission.team_id, track=submission.track_id)
    return tokens.exclude(run=None, events=[]).count()


def _still_false(status: RunStatus) -> str:
    """Return the address of what could still be false about the run, although all checks have passed."""
    if status.epsilons:
        return reverse("docs:document", args=["forging/"])
    if status.run.results.decoder_bytes:
        return reverse("docs:document", args=["forging/"]) + "#what-a-custom-codec-can-do-without-data"
    return reverse("docs:document", args=["bytes/"]) + "#what-a-cheater-can-gain"


def _result(status: RunStatus, step: Step) -> dict[str, object]:
    """Return what a step has found; empty where it found nothing."""
    return next((one.result for one in status.evidence if one.step is step), {})


def _signed_by(status: RunStatus) -> str:
    """Return the fingerprint of the key that signed the training record; empty where there is none."""
    return fingerprint(str(_result(status, Step.ACCOUNTING).get("public_key", "")))
