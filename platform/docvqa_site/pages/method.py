"""The page of a submitted method: what it is, its verdict and ranks, one table of its runs, and the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.timezone import localdate
from django.views.decorators.http import require_safe

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.column import Shown
from docvqa_site.boards.columns import columns_of
from docvqa_site.boards.leakage import leakage_plot, measured, stated
from docvqa_site.boards.leakage import verdict as leakage_verdict
from docvqa_site.boards.models import newest_results
from docvqa_site.boards.ordering import WouldRank, pending_levels, rank_if_published
from docvqa_site.boards.ranking import Entry, Row
from docvqa_site.boards.standings import Standing, standings_of
from docvqa_site.boards.table import Table
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import Shortfall
from docvqa_site.evaluation.display.rejected_before import rejected_before
from docvqa_site.evaluation.display.results import shortfall, without_traces_of_team
from docvqa_site.evaluation.display.status import RunStatus
from docvqa_site.evaluation.services import may_cancel
from docvqa_site.evaluation.test_sets.parts import scored_test_set
from docvqa_site.evaluation.views import status_context
from docvqa_site.notifications.inbox import mark_read, notifications_of
from docvqa_site.pages.citing import cited_people, entries
from docvqa_site.pages.file_names import stem_of
from docvqa_site.pages.index_settings import settings_in_index
from docvqa_site.pages.progress import plot_with_mark, rank_plots
from docvqa_site.pages.question_types import has_types, type_rows, types_title
from docvqa_site.reviews.declared import SettingsTable, settings_of
from docvqa_site.reviews.models import Decision
from docvqa_site.reviews.publication import proof_note, public_proof_url
from docvqa_site.reviews.selectors import judges_alone, may_organize, verdict_on
from docvqa_site.reviews.verdict import Verdict
from docvqa_site.submissions.code import code_files
from docvqa_site.submissions.forms import WithdrawalForm
from docvqa_site.submissions.models import Run, Submission, SubmissionState
from docvqa_site.submissions.publication import may_publish
from docvqa_site.submissions.removal import withdrawal_warning
from docvqa_site.submissions.selectors import withdrawn_submissions
from docvqa_site.submissions.views import draft_page, may_withdraw, own_membership, shown_submission
from docvqa_site.ui.budgets import at_budget, board_query
from docvqa_site.ui.plots import draw
from evaluator.messages.jobs import ArtifactKind, TrustLevel

# A description of up to so many characters stands above the results.
SHORT_CHARACTERS = 700


@dataclass(frozen=True)
class MethodRun:
    """A run of the method with its rank, or with the reason for having none.

    Attributes:
        row: The run as the boards show it.
        would_rank: The rank that it would have if it were ranked today; None where it is public, and for others.
    """

    status: RunStatus
    row: Row
    reason: Shortfall | None
    would_rank: WouldRank | None = None

    @property
    def cells(self) -> list[SafeString]:
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
        return draft_page(request, submission, rejected_before(submission))
    if isinstance(request.user, User):
        mark_read(notifications_of(request.user).filter(page=submission.get_absolute_url()))
    status = status_context(request, submission)
    prefetch_related_objects([submission], "reviews")
    verdict = verdict_on(submission)
    names_team = status["is_insider"] or not submission.anonymous
    shown = [one for one in status["statuses"] if one.run.scored_at]
    scored = [one.run for one in shown]
    listed = is_listed(submission)
    runs = method_runs(submission, shown, verdict, names_team=names_team, is_own=membership is not None)
    invalid = [one for one in runs if one.reason and one.reason.is_invalid]
    leaked = measured(scored)
    types = type_rows([(at_budget(run.budget, "{}") or "ANLS", run.results) for run in scored])
    people = cited_people(submission)
    context = {
        "submission": submission,
        "is_own": membership is not None,
        "may_organize": may_organize(request.user, submission),
        "names_team": names_team,
        "has_attached_code": code_files(submission).exists(),
        "is_short": 0 < len(submission.description) <= SHORT_CHARACTERS,
        "has_problems": any(one.problems for one in status["statuses"]),
        "may_withdraw": may_withdraw(submission, membership),
        "may_cancel": membership is not None and may_cancel(submission),
        "withdrawal": WithdrawalForm(),
        "withdrawal_warning": withdrawal_warning(submission) if membership else "",
        "verdict": verdict,
        "hides_decisions": isinstance(request.user, User) and judges_alone(submission, request.user),
        "proof_url": public_proof_url(submission, verdict.status),
        "proof_note": proof_note(submission),
        "decided_at": decided_at(submission),
        "final_ranks": _final_ranks(submission) if listed else [],
        "runs": runs,
        "invalid": invalid,
        # Whoever sees who the team is may read the records and indexes, too.
        "run_settings": _settings(submission, scored) if names_team and scored else None,
        "types": types,
        "types_title": types_title(types),
        "has_types": has_types(types),
        "has_leakage": any(run.results.leakage for run in scored),
        "leakage_sizes": sorted(
            {
                (found.providers, found.least_auc)
                for run in scored
                if (found := run.results.leakage) and found.least_auc is not None
            }
        ),
        "heads_of_results": results_table(submission.track).heads,
        "leakage_plot": draw(leakage_plot(leaked)),
        "leakage_stated": stated(scored),
        "leakage_verdict": leakage_verdict(leaked),
        "scored_on": scored_test_set(submission.track),
        "file_stem": stem_of(submission),
        "permalink": settings.SITE_URL + submission.get_absolute_url(),
        "plot": plot_with_mark(submission) if listed and runs else "",
        "is_listed": listed,
        # Those of removed budgets are on none.
        "has_board": any(run.budget in submission.track.run_budgets() for run in scored),
        "rank_plots": rank_plots(scored, localdate()) if listed else "",
        "may_publish": may_publish(submission),
        "bibtex_entries": entries(submission, people),
        "researchers": people,
        "has_hub": bool(settings.HUB_DATASET),
        **_withdrawal(submission),
        **status,
    }
    if context["is_insider"]:
        context["artifacts"] = submission.artifacts.select_related("run", "upload")
    return render(request, "pages/method.html", context)


def method_runs(
    submission: Submission,
    scored: Sequence[RunStatus],
    verdict: Verdict,
    *,
    names_team: bool,
    is_own: bool,
) -> list[MethodRun]:
    """Return scored runs of a submission with their ranks; for its team, with those that they would have."""
    runs = [one.run for one in scored]
    standings = standings_of(runs) if is_listed(submission) else {}
    rows = _rows(runs, verdict, standings, names_team=names_team)
    shows_would_rank = is_own and submission.is_unpublished
    return [
        MethodRun(
            one,
            row,
            shortfall(one.run, rejected=verdict.rejection),
            rank_if_published(one.run) if shows_would_rank else None,
        )
        for one, row in zip(scored, rows, strict=True)
    ]


def is_listed(submission: Submission) -> bool:
    """Return whether boards list the submission's runs, which can then be cited."""
    return submission.state == SubmissionState.SUBMITTED and not submission.is_unpublished


def _settings(submission: Submission, runs: Sequence[Run]) -> SettingsTable:
    """Return the settings that the runs' records state; in a track without records, their indexes of messages."""
    has_records = ArtifactKind.TRAINING_RECORD in submission.track.kind.run_artifacts
    read = settings_of if has_records else settings_in_index
    return read([(at_budget(run.budget, "{}") or "Run", run) for run in runs])


def _tombstone(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Say that a submission was withdrawn, which citations may still lead to. Raises `Http404` for any other."""
    submission = withdrawn_submissions().filter(pk=submission_id).first()
    if submission is None:
        raise Http404("no such submission")
    context = {"submission": submission, **_withdrawal(submission)}
    return render(request, "pages/withdrawn.html", context, status=410)


def _withdrawal(submission: Submission) -> dict[str, Any]:
    """Return when the submission was withdrawn, and the team's reason; nothing of any other."""
    if submission.state != SubmissionState.WITHDRAWN:
        return {}
    entry = AuditEntry.objects.filter(action="submission.withdrawn", object_id=str(submission.pk)).first()
    return {"withdrawn_at": entry and entry.at, "reason": entry.details.get("reason", "") if entry else ""}


def _final_ranks(submission: Submission) -> list[dict[str, Any]]:
    """Return the ranks of the submission among the final results of its phase, as far down as their page shows."""
    address = submission.get_absolute_url()
    return [
        {"results": results, "board": part["board"], "rank": row["rank"]}
        for results in newest_results().filter(phase=submission.phase_id)
        for part in results.standings
        for row in part["rows"]
        if row["url"] == address
    ]


def decided_at(submission: Submission) -> datetime | None:
    """Return when a reviewer decided last."""
    reviews = submission.reviews.all()
    decided = (review.decided_at for review in reviews if review.decision != Decision.PENDING)
    return max(filter(None, decided), default=None)


def _rows(
    runs: Sequence[Run], verdict: Verdict, standings: Mapping[UUID, Standing], *, names_team: bool
) -> list[Row]:
    """Return the rows of a submission's scored runs as its boards show them; those without a standing have no rank."""
    return [_row(run, verdict, standings.get(run.pk), names_team=names_team) for run in runs]


def _row(run: Run, verdict: Verdict, standing: Standing | None, *, names_team: bool) -> Row:
    submission = run.submission
    entry = Entry(
        key=str(run.pk),
        method=submission.title,
        team="",
        url=submission.get_absolute_url(),
        submitted_at=submission.submitted_at or submission.created_at,
        results=run.results if names_team else without_traces_of_team(run.results),
        status=verdict.status,
    )
    if standing is None:
        return Row(entry, None)
    return Row(entry, standing.rank, pending=_pending(run), ranks=standing.possible)


def _pending(run: Run) -> TrustLevel | None:
    """Return the trust level that the run lacks for its rank to be final."""
    phase = run.submission.phase
    if phase is None or not phase.examined_ranks:
        return None
    return pending_levels(run.submission.track, run.budget, phase.name).get(run.pk)
