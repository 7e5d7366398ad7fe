"""The database orders boards exactly as the ranking rules do."""

import random
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from docvqa_site.boards.boards import boards_of, leaders_of, stored_boards
from docvqa_site.boards.ordering import rank_if_published
from docvqa_site.boards.ranking import Row
from docvqa_site.boards.selection import Baselines, Selection, Sort
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, RANKINGS
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from evaluator.messages.jobs import Check, CheckStatus, TrustLevel
from evaluator.messages.leakage import Leakage
from tests.docvqa_site.factories import (
    make_phase,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
)

pytestmark = pytest.mark.django_db

THRESHOLD = 0.8242
BUDGET = 4.0
NOW = timezone.now()
# Neighbors of the limits, values that are shown as equal, and numbers that a decimal column would round.
SCORES = [0.8241999999999999, THRESHOLD, 0.8242000000000002, 0.82429, 0.1 + 0.2, 1e-5, 0.0, 1.0]
EPSILONS = [3.9999999999999996, BUDGET, 4.000000000000001, 1e-7, 12.5, None]
BYTES = [0, 1, 2**53, 2**53 + 1, 2**63 - 1]
LEAKAGES = [None, Leakage(providers=60), *(Leakage(providers=60, auc=auc) for auc in (0.6, 0.65, 1.0))]


@pytest.fixture
def track(request):
    ranking = request.param
    track = make_track(
        ranking,
        anls_threshold=THRESHOLD,
        budgets=[BUDGET],
        required_reviews=1,
        examined_ranks=3,
        closes_at=NOW + timedelta(days=1),
    )
    final = make_phase(
        track,
        name="Final",
        starts_at=NOW + timedelta(days=1),
        examined_ranks=2,
        examined_level=2,
        requires_counted=True,
    )
    teams = [make_team() for _ in range(3)]
    reviewers = [make_user(is_staff=True) for _ in range(2)]
    random_ = random.Random(7)
    for _ in range(60):
        submission = make_submission(
            random_.choice(teams),
            track,
            state=random_.choice([SubmissionState.SUBMITTED] * 9 + [SubmissionState.WITHDRAWN]),
            submitted_at=NOW - timedelta(minutes=random_.randrange(4)),
            phase=random_.choice([track.phases.first(), final]),
        )
        make_run(
            submission,
            state=random_.choice([RunState.SCORED] * 9 + [RunState.REJECTED]),
            budget=track.run_budgets()[0],
            anls=random_.choice(SCORES),
            bytes_total=random_.choice(BYTES),
            epsilon=random_.choice(EPSILONS),
            disqualified_because=random_.choice([""] * 9 + ["a reason"]),
            unbound=random_.choice([""] * 3 + ["record.linkage: flagged"]),
            trust_level=random_.choice(list(TrustLevel)),
            failed_level=random_.choice([None] * 9 + [TrustLevel.REPLAYED]),
            counting=random_.choice(["counted", "declared"]),
            log_flag=random_.choice(["", "", "log.directions"]),
            log_accepted_at=random_.choice([None, NOW]),
            leakage=random_.choice(LEAKAGES),
        )
        for reviewer in reviewers if track.kind.needs_proof else []:
            decision = random_.choice([*Decision, None])
            if decision is not None:
                ProofReview.objects.create(
                    submission=submission,
                    reviewer=reviewer,
                    decision=decision,
                    reason="a reason",
                    decided_at=None if decision == Decision.PENDING else NOW,
                )
    return track


every_kind = pytest.mark.parametrize("track", RANKINGS.values(), ids=list(RANKINGS), indirect=True)


@every_kind
def test_the_rows_are_those_of_the_rules(track):
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    assert sum(stored.counts()) == len(stored) == len(rules.rows)
    assert list(stored) == rules.rows
    ranks = [row.rank for row in rules.rows if row.rank]
    assert 0 < len(ranks) < len(rules.rows)
    assert {row.pending for row in rules.rows} > {None}


@every_kind
def test_a_private_run_is_told_the_rank_that_it_gets_once_it_is_public(track):
    (board,) = boards_of(track)
    for row in board.rows:
        submission = Submission.objects.filter(runs=row.entry.run)
        published = submission.get().published_at
        submission.update(published_at=None)
        would = rank_if_published(Run.objects.get(pk=row.entry.run))
        assert (str(would) if would else None) == (str(row.rank) if row.rank else None)
        submission.update(published_at=published)


@every_kind
@pytest.mark.parametrize("model", [Run, Submission])
def test_one_index_has_every_column_that_picks_the_runs_of_a_page(track, model):
    """Rows of runs and submissions are wide: for a column that its index lacks, PostgreSQL reads them all."""
    with CaptureQueriesContext(connection) as asked:
        for board in stored_boards(track):
            board.counts()
            board.places(0, 50)
            board.places(50, 100)
    for query in asked.captured_queries:
        used = set(re.findall(rf'"{model._meta.db_table}"\."(\w+)"', query["sql"]))
        assert used
        assert any(used <= columns_of(index, model) for index in model._meta.indexes), query["sql"]


def columns_of(index, model):
    """The columns that an index holds, and those of its condition: all of its rows meet that."""
    ordered = [name for name, _ in index.fields_orders]
    conditions = [name.split("__")[0] for name, _ in index.condition.children]
    return {model._meta.get_field(name).column for name in [*ordered, *index.include, *conditions]}


@every_kind
@pytest.mark.parametrize("length", [1, 7, 50])
def test_pages_are_slices_of_the_whole_board(track, length):
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    for start in range(0, len(rules.rows) + length, length):
        assert stored[start : start + length] == rules.rows[start : start + length]


@every_kind
def test_the_leaders_are_the_first_and_the_first_verified_one(track):
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    ranked = [row.entry for row in rules.rows if row.rank]
    (leaders,) = leaders_of([stored])
    assert leaders.first is not None
    assert leaders.first.entry == ranked[0]
    assert leaders.verified == next((one for one in ranked if one.status is ResultStatus.VERIFIED), None)


@every_kind
def test_the_rows_of_a_team_have_the_ranks_among_all(track):
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    for team in {submission.team for submission in track.submissions.all()}:
        own = [row for row in rules.rows if row.entry.team == team.name]
        selection = Selection(team=team.slug)
        assert stored.ranked(selection, 0, 99) + stored.unranked(selection, 0, 99) == own


@every_kind
def test_filters_leave_the_ranks_as_they_are(track):
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    ranked = [row for row in rules.rows if row.rank]
    first = ranked[0].entry
    Submission.objects.filter(title=first.method).update(
        is_baseline=True, code_url="https://example.org/code"
    )
    expected: list[tuple[Selection, Callable[[Row], bool]]] = [
        (Selection(verified=True), lambda row: row.entry.status == ResultStatus.VERIFIED),
        (Selection(open_code=True), lambda row: row.entry.method == first.method),
        (Selection(baselines=Baselines.ONLY), lambda row: row.entry.method == first.method),
        (Selection(baselines=Baselines.NONE), lambda row: row.entry.method != first.method),
        (Selection(text=first.method.upper()), lambda row: first.method in row.entry.method),
    ]
    for selection, keeps in expected:
        ranks = [row.rank for row in ranked if keeps(row)]
        assert [row.rank for row in stored.ranked(selection, 0, 99)] == ranks
        assert stored.counts(selection)[0] == len(ranks)


@every_kind
def test_the_best_of_each_team_is_its_first_row(track):
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    first = {row.entry.team: row.rank for row in reversed(rules.rows) if row.rank}
    best = stored.ranked(Selection(best=True), 0, 99)
    assert {row.entry.team: row.rank for row in best} == first
    assert stored.counts(Selection(best=True))[0] == len(best) == len(first)


def leaked(found: Leakage | None) -> float:
    """Where the leakage of a run belongs: what isn't significant first, what wasn't measured last."""
    return 2 if found is None else found.auc or 0


@pytest.mark.parametrize("track", [BEST_ANLS_AT_BUDGET], indirect=True)
@pytest.mark.parametrize(
    ("sort", "key"),
    [
        (Sort.BYTES, lambda row: row.entry.results.bytes_total),
        (Sort.EPSILON, lambda row: row.entry.results.epsilon),
        (Sort.ANLS, lambda row: -row.entry.results.anls),
        (Sort.NEWEST, lambda row: -row.entry.submitted_at.timestamp()),
        (Sort.METHOD, lambda row: row.entry.method.lower()),
        (Sort.LEAKAGE, lambda row: leaked(row.entry.results.leakage)),
        (Sort.STATUS, lambda row: (row.entry.status != ResultStatus.VERIFIED, row.rank)),
    ],
)
def test_another_order_keeps_every_row_and_its_rank(track, sort, key):
    (stored,) = stored_boards(track)
    rows = stored.ranked(Selection(sort=sort), 0, 99)
    assert [key(row) for row in rows] == sorted(key(row) for row in rows)
    assert sorted(row.rank or 0 for row in rows) == list(range(1, stored.counts()[0] + 1))


def test_flagged_checks_are_counted_without_loading_the_checks():
    track = make_track(BEST_ANLS_AT_BUDGET, budgets=[BUDGET])
    for flagged in range(3):
        statuses = [CheckStatus.FLAGGED] * flagged + [CheckStatus.PASSED, CheckStatus.NO_POWER]
        checks = [
            Check(id=f"C{number}", status=status, expected="1", found="2")
            for number, status in enumerate(statuses, 1)
        ]
        make_run(
            make_submission(track=track, state="submitted"), state="scored", budget=BUDGET, checks=checks
        )
    (bare,), (full,) = stored_boards(track), stored_boards(track, with_checks=True)
    assert sorted(row.entry.flagged_checks for row in bare) == [0, 1, 2]
    assert not any(row.entry.results.checks for row in bare)
    assert all(row.entry.flagged_checks == row.entry.results.flagged_checks for row in full[0:3])
