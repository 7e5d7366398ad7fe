"""The page of a submitted method: what it is, its verdict and ranks, one table of its runs, and the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.timezone import localdate
from django.views.decorators.http import require_safe

from evaluator.messages.jobs import TrustLevel
from portal.audit.models import AuditEntry
from portal.boards.columns import Shown, Table, columns_of
from portal.boards.ordering import pending_levels, rank_if_published, ranks_of
from portal.boards.plots import leakage_plot
from portal.boards.ranking import Entry, Row
from portal.challenge.models import Track
from portal.challenge.rankings import Shortfall
from portal.evaluation.display.results import shortfall, without_traces_of_team
from portal.evaluation.display.status import RunStatus
from portal.evaluation.test_sets.parts import scored_test_set
from portal.evaluation.views import status_context
from portal.pages.citing import bibtex, cited_people
from portal.pages.progress import plot_with_mark, rank_plots
from portal.pages.question_types import type_rows
from portal.reviews.models import Decision
from portal.reviews.publication import public_proof_url
from portal.reviews.selectors import verdict_on
from portal.reviews.verdict import Verdict
from portal.submissions.forms import WithdrawalForm
from portal.submissions.models import Run, Submission, SubmissionState
from portal.submissions.publication import may_publish
from portal.submissions.selectors import withdrawn_submissions
from portal.submissions.views import draft_page, may_withdraw, own_membership, shown_submission
from portal.ui.budgets import at_budget, board_query
from portal.ui.plots import draw

# A description of up to so many characters stands above the results.
SHORT_CHARACTERS = 700


@dataclass(frozen=True)
class MethodRun:
    """A run of the method with its rank, or with the reason for having none.

    Attributes:
        row: The run as the boards show it.
        would_rank: The rank that it would have if its team published it; None where it is public, and for others.
    """

    status: RunStatus
    row: Row
    reason: Shortfall | None
    would_rank: int | None = None

    @property
    def rank(self) -> int | None:
        """Its rank; None if it has none."""
        return self.row.rank

    @property
    def cells(self) -> list[SafeString]:
        """The run's results as cells of the table of results."""
        return results_table(self.status.run.submission.track).cells(self.row)

    @property
    def board(self) -> str:
        """The query of the address of its board."""
        return board_query(self.status.run.budget)

    @property
    def place(self) -> str:
        """Where it has its rank, in words."""
        run = self.status.run
        return at_budget(run.budget) or f" in {run.submission.track}"


def results_table(track: Track) -> Table:
    """Return the table of a method's results."""
    return Table(track, columns_of(track, Shown.METHOD))


@require_safe
def method(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Show a draft as its team fills it, and anything later as everyone who may see it does."""
    try:
        submission = shown_submission(request, submission_id)
    except Http404:
        return _tombstone(request, submission_id)
    membership = own_membership(request, submission)
    if submission.state == SubmissionState.DRAFT and membership:
        return draft_page(request, submission)
    status = status_context(request, submission)
    prefetch_related_objects([submission], "reviews")
    verdict = verdict_on(submission)
    shows_team = names_team(submission, is_insider=bool(status["is_insider"]))
    runs = _runs(
        submission,
        verdict,
        [one for one in _statuses(status) if one.run.scored_at],
        shows_would_rank=membership is not None and submission.is_unpublished,
        names_team=shows_team,
    )
    people = cited_people(submission)
    context = {
        "submission": submission,
        "is_own": membership is not None,
        "names_team": shows_team,
        "is_short": 0 < len(submission.description) <= SHORT_CHARACTERS,
        "may_withdraw": may_withdraw(submission, membership),
        "withdrawal": WithdrawalForm(),
        "verdict": verdict,
        "proof_url": public_proof_url(submission, verdict.status),
        "decided_at": decided_at(submission),
        "runs": runs,
        "types": type_rows([one.status.run.results for one in runs]),
        "heads": [at_budget(one.status.run.budget, "{}") or "ANLS" for one in runs],
        "has_leakage": any(one.status.run.results.leakage for one in runs),
        "heads_of_results": results_table(submission.track).heads,
        "leakage_plot": draw(leakage_plot([one.status.run for one in runs])),
        "scored_on": scored_test_set(submission.track),
        "permalink": settings.SITE_URL + submission.get_absolute_url(),
        "plot": plot_with_mark(submission) if _is_listed(submission) and runs else "",
        "is_listed": _is_listed(submission),
        "rank_plots": rank_plots([one.status.run for one in runs], localdate())
        if _is_listed(submission)
        else "",
        "may_publish": may_publish(submission),
        "bibtex": bibtex(submission, people),
        "researchers": people,
        "has_hub": bool(settings.HUB_DATASET),
        **status,
    }
    if context["is_insider"]:
        context["artifacts"] = submission.artifacts.select_related("run", "upload")
    return render(request, "pages/method.html", context)


def _statuses(status: dict[str, object]) -> Sequence[RunStatus]:
    found = status["statuses"]
    return found if isinstance(found, list) else []


def _tombstone(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Say that a submission was withdrawn, which citations may still lead to. Raises `Http404` for any other."""
    submission = withdrawn_submissions().filter(pk=submission_id).first()
    if submission is None:
        raise Http404("no such submission")
    entry = AuditEntry.objects.filter(action="submission.withdrawn", object_id=str(submission.pk)).first()
    reason = entry.details.get("reason", "") if entry else ""
    context = {"submission": submission, "withdrawn_at": entry and entry.at, "reason": reason}
    return render(request, "pages/withdrawn.html", context, status=410)


def decided_at(submission: Submission) -> datetime | None:
    """Return when a reviewer decided last."""
    decided = [
        review.decided_at for review in submission.reviews.all() if review.decision != Decision.PENDING
    ]
    return max(filter(None, decided), default=None)


def _runs(
    submission: Submission,
    verdict: Verdict,
    statuses: Sequence[RunStatus],
    *,
    shows_would_rank: bool,
    names_team: bool,
) -> list[MethodRun]:
    """Return the runs with their ranks; those of an unpublished or withdrawn submission have none."""
    is_listed = _is_listed(submission)
    return [
        MethodRun(
            status,
            Row(
                _entry(submission, verdict, status.run, names_team=names_team),
                _rank(submission, status.run) if is_listed else None,
                pending=_pending(submission, status.run) if is_listed else None,
            ),
            _reason(verdict, status.run),
            rank_if_published(status.run) if shows_would_rank else None,
        )
        for status in statuses
    ]


def _entry(submission: Submission, verdict: Verdict, run: Run, *, names_team: bool) -> Entry:
    return Entry(
        run=run.pk,
        method=submission.title,
        team="",
        url=submission.get_absolute_url(),
        submitted_at=submission.submitted_at or submission.created_at,
        results=run.results if names_team else without_traces_of_team(run.results),
        status=verdict.status,
    )


def _is_listed(submission: Submission) -> bool:
    """Return whether the boards list the submission's scored runs."""
    return submission.state == SubmissionState.SUBMITTED and not submission.is_unpublished


def names_team(submission: Submission, *, is_insider: bool) -> bool:
    """Return whether a page shows by whom the submission is, and what its team wrote about it."""
    return is_insider or not submission.anonymous


def _rank(submission: Submission, run: Run) -> int | None:
    return ranks_of(submission.track, run.budget, [run.pk]).get(run.pk)


def _pending(submission: Submission, run: Run) -> TrustLevel | None:
    """Return the trust level that the run lacks for its rank to be final."""
    if submission.phase is None or not submission.phase.examined_ranks:
        return None
    return pending_levels(submission.track, run.budget, submission.phase.name).get(run.pk)


def _reason(verdict: Verdict, run: Run) -> Shortfall | None:
    return shortfall(run, rejected=verdict.rejection)
