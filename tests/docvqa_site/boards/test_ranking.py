import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.boards.ranking import Entry, Row, rank
from docvqa_site.challenge.rankings import BEST_ANLS, BEST_ANLS_AT_BUDGET, FEWEST_BYTES, RANKINGS
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.ui.rounding import rounded_up
from evaluator.messages.results import RunResults

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
THRESHOLD = 0.8
BUDGET = 4.0


def entry(number: int = 0, **fields: Any) -> Entry:
    results = {"anls": 0.9, "bytes_total": 1000, "epsilon": 3.9, "trust_level": 0, "unbound": ""}
    results |= {"failed_level": None, "failed_because": "", "decimals": 4}
    results |= {"counting": "counted", "not_counted_because": "", "log_flag": ""}
    results |= {name: fields.pop(name) for name in results.keys() & fields.keys()}
    defaults: dict[str, Any] = {
        "key": str(UUID(int=number)),
        "method": f"method {number}",
        "team": "team",
        "url": "/",
        "submitted_at": NOON + timedelta(minutes=number),
        "results": RunResults(**results),
    }
    return Entry(**{**defaults, **fields})


def rank_by_bytes(entries: list[Entry], threshold: float) -> list[Row]:
    return rank(entries, FEWEST_BYTES, {"anls_threshold": threshold})


def rank_by_anls(entries: list[Entry], budget: float) -> list[Row]:
    return rank(entries, BEST_ANLS_AT_BUDGET, {"budget": budget, "unbound_level": 2})


def ranks(rows: list[Row]) -> list[tuple[int, int | None]]:
    return [(row.entry.run.int, row.rank) for row in rows]


scores = st.none() | st.floats(0, 1) | st.sampled_from([math.nan, math.inf, THRESHOLD])
entries = st.lists(
    st.builds(
        entry,
        st.integers(0, 10_000),
        anls=scores,
        bytes_total=st.none() | st.integers(0, 5),
        epsilon=st.none() | st.floats(0, 10) | st.sampled_from([math.nan, math.inf, BUDGET]),
        submitted_at=st.integers(0, 3).map(lambda minutes: NOON + timedelta(minutes=minutes)),
        status=st.sampled_from(ResultStatus),
        unbound=st.sampled_from(["", "", "record.linkage: no power"]),
        trust_level=st.integers(0, 3),
        failed_level=st.sampled_from([None, None, 3]),
        counting=st.sampled_from(["counted", "declared"]),
        log_flag=st.sampled_from(["", "", "log.directions"]),
        requires_counted=st.booleans(),
        is_log_accepted=st.booleans(),
    ),
    unique_by=lambda made: made.run,
)
LIMITS = {"anls_threshold": THRESHOLD, "budget": BUDGET, "unbound_level": 2}
kinds = st.sampled_from(list(RANKINGS.values()))


class TestBytes:
    def test_fewest_bytes_come_first(self):
        rows = rank_by_bytes(
            [entry(1, bytes_total=30), entry(2, bytes_total=10), entry(3, bytes_total=20)], 0.8
        )
        assert ranks(rows) == [(2, 1), (3, 2), (1, 3)]

    def test_an_anls_at_the_threshold_ranks(self):
        assert rank_by_bytes([entry(anls=0.8)], 0.8)[0].rank == 1

    def test_an_anls_below_the_threshold_is_listed_last_with_the_reason(self):
        rows = rank_by_bytes([entry(1, anls=0.41, bytes_total=1), entry(2, bytes_total=10)], 0.82)
        assert ranks(rows) == [(2, 1), (1, None)]
        assert rows[1].reason == "ANLS 0.4100 is below the threshold of 0.8200"

    def test_all_reasons_are_listed(self):
        (row,) = rank_by_bytes([entry(anls=0.41, counting="declared", requires_counted=True)], 0.82)
        assert row.reason == (
            "ANLS 0.4100 is below the threshold of 0.8200; the bytes are declared, not counted: the run has no "
            "transcript"
        )
        assert row.short_reason == "ANLS 0.4100 < 0.8200, bytes not counted"

    def test_the_reason_never_shows_the_threshold_itself_as_too_low(self):
        (row,) = rank_by_bytes([entry(anls=0.82419999)], 0.8242)
        assert row.reason == "ANLS 0.8241 is below the threshold of 0.8242"


class TestAnls:
    def test_the_highest_anls_comes_first(self):
        rows = rank_by_anls([entry(1, anls=0.5), entry(2, anls=0.7)], 4)
        assert ranks(rows) == [(2, 1), (1, 2)]

    def test_an_epsilon_at_the_budget_ranks(self):
        assert rank_by_anls([entry(epsilon=4.0)], 4)[0].rank == 1

    def test_an_epsilon_beyond_the_budget_is_listed_with_the_reason(self):
        (row,) = rank_by_anls([entry(epsilon=1.3)], 1)
        assert (row.rank, row.reason) == (None, "recomputed ε = 1.3000 exceeds the budget of 1")

    def test_the_reason_shows_how_an_epsilon_exceeds_the_budget_however_little(self):
        (row,) = rank_by_anls([entry(epsilon=math.nextafter(1, 2))], 1)
        assert row.reason == "recomputed ε = 1.0001 exceeds the budget of 1"

    def test_a_rejected_result_is_listed_with_the_reason(self):
        rejected = entry(status=ResultStatus.REJECTED, status_reason="proof rejected: no composition")
        (row,) = rank_by_anls([rejected], 4)
        assert (row.rank, row.reason) == (None, "proof rejected: no composition")

    def test_a_provisional_result_ranks(self):
        assert rank_by_anls([entry(status=ResultStatus.PROVISIONAL)], 4)[0].rank == 1


UNBOUND = "record.linkage: no power"


class TestTrust:
    def test_an_unbound_run_has_no_rank_until_a_replay_or_a_rerun_confirms_it(self):
        rows = rank_by_anls([entry(level, unbound=UNBOUND, trust_level=level) for level in range(4)], 4)
        assert ranks(rows) == [(2, 1), (3, 2), (0, None), (1, None)]
        assert rows[2].reason == (
            "nothing shows that noised sums led to the checkpoint (check record.linkage: no power), and no replay (L2) "
            "or rerun (L3) has confirmed the run"
        )
        assert rows[2].short_reason == "unbound (linkage: no power)"

    def test_a_track_may_rank_unbound_runs(self):
        limits = {"budget": 4.0, "unbound_level": 0}
        assert rank([entry(unbound=UNBOUND)], BEST_ANLS_AT_BUDGET, limits)[0].rank == 1

    def test_a_failed_examination_takes_the_rank_with_its_reason(self):
        (row,) = rank_by_bytes([entry(failed_level=3, failed_because="Nothing agrees.")], 0.8)
        assert (row.rank, row.reason) == (None, "it failed the rerun (L3): Nothing agrees.")
        assert row.short_reason == "failed the rerun (L3)"

    def test_the_first_ranks_of_a_phase_are_pending_without_its_examination(self):
        final = {"phase": "final", "examined_ranks": 2, "examined_level": 2}
        entries = [
            entry(1, anls=0.9),
            entry(2, anls=0.8, **final, trust_level=2),
            entry(3, anls=0.7, **final),
            entry(4, anls=0.6, **final),
        ]
        rows = rank_by_anls(entries, 4)
        assert [row.pending_words for row in rows] == ["", "", "replay (L2) pending", ""]

    def test_a_reason_has_as_many_digits_as_the_test_set_supports(self):
        (row,) = rank_by_bytes([entry(anls=0.8199, decimals=2)], 0.8242)
        assert row.reason == "ANLS 0.81 is below the threshold of 0.8242"

    def test_equal_shown_scores_are_ordered_by_the_full_ones(self):
        rows = rank_by_anls([entry(1, anls=0.8101, decimals=2), entry(2, anls=0.8102, decimals=2)], 4)
        assert ranks(rows) == [(2, 1), (1, 2)]


class TestDeclaredBytes:
    def test_a_phase_may_rank_counted_bytes_alone(self):
        declared = {"counting": "declared", "bytes_total": 10}
        rows = rank_by_bytes(
            [
                entry(1, **declared, requires_counted=True),
                entry(2, **declared, requires_counted=True, not_counted_because="this worker has no sandbox"),
                entry(3, **declared),
                entry(4, requires_counted=True),
            ],
            0.8,
        )
        assert ranks(rows) == [(3, 1), (4, 2), (1, None), (2, None)]
        assert rows[2].reason == "the bytes are declared, not counted: the run has no transcript"
        assert rows[3].reason == "the bytes are declared, not counted: this worker has no sandbox"
        assert rows[3].short_reason == "bytes not counted"

    def test_a_flag_of_a_declared_log_withholds_the_rank_until_an_organizer_accepts_the_log(self):
        flagged = {"counting": "declared", "log_flag": "log.message_sizes"}
        rows = rank_by_bytes([entry(1, **flagged), entry(2, **flagged, is_log_accepted=True)], 0.8)
        assert ranks(rows) == [(2, 1), (1, None)]
        assert rows[1].reason == (
            "check log.message_sizes flagged the run, and no organizer has accepted its log yet"
        )
        assert rows[1].short_reason == "log flagged (message sizes)"

    def test_where_bytes_only_break_ties_they_may_be_declared(self):
        declared = entry(counting="declared", requires_counted=True, log_flag="log.directions")
        assert rank_by_anls([declared], 4)[0].rank == rank([declared], BEST_ANLS, {})[0].rank == 1


def test_fewer_bytes_break_ties_of_scores_and_higher_scores_ties_of_bytes():
    tied = [entry(1, anls=0.9, bytes_total=20), entry(2, anls=0.9, bytes_total=10)]
    assert ranks(rank_by_anls(tied, 4)) == ranks(rank(tied, BEST_ANLS, {})) == [(2, 1), (1, 2)]
    tied = [entry(1, anls=0.85, bytes_total=10), entry(2, anls=0.9, bytes_total=10)]
    assert ranks(rank_by_bytes(tied, 0.8)) == [(2, 1), (1, 2)]


def test_without_a_constraint_every_score_ranks():
    rows = rank([entry(1, anls=0.0, epsilon=None), entry(2, anls=1e-4), entry(3, anls=None)], BEST_ANLS, {})
    assert ranks(rows) == [(2, 1), (1, 2), (3, None)]
    assert rows[2].reason == "ANLS is missing"


def test_of_equal_results_the_earlier_comes_first():
    later, earlier = entry(1, submitted_at=NOON), entry(2, submitted_at=NOON - timedelta(seconds=1))
    assert ranks(rank_by_bytes([later, earlier], 0.8)) == [(2, 1), (1, 2)]
    assert ranks(rank_by_anls([later, earlier], 4)) == [(2, 1), (1, 2)]


@given(entries, kinds, st.randoms())
def test_the_order_in_which_entries_come_makes_no_difference(made, kind, random):
    shuffled = list(made)
    random.shuffle(shuffled)
    # The text of a NaN compares equal to itself, the value doesn't.
    assert list(map(repr, rank(shuffled, kind, LIMITS))) == list(map(repr, rank(made, kind, LIMITS)))


@given(entries, kinds)
def test_every_entry_becomes_one_row_and_ranks_count_from_one_above_the_unranked(made, kind):
    rows = rank(made, kind, LIMITS)
    ranked = [row for row in rows if row.rank is not None]
    assert sorted(row.entry.run for row in rows) == sorted(one.run for one in made)
    assert [row.rank for row in rows] == [*range(1, len(ranked) + 1), *[None] * (len(rows) - len(ranked))]
    assert all(bool(row.reason) == (row.rank is None) for row in rows)


@given(entries)
def test_ranked_by_bytes_means_qualified_and_in_order(made):
    ranked = [row.entry for row in rank_by_bytes(made, THRESHOLD) if row.rank]
    scores = [one.results.anls for one in ranked if one.results.anls is not None]
    assert len(scores) == len(ranked)
    assert all(math.isfinite(score) and score >= THRESHOLD for score in scores)
    sent = [one.results.bytes_total for one in ranked if one.results.bytes_total is not None]
    assert len(sent) == len(ranked)
    assert sent == sorted(sent)
    assert not any(one.status is ResultStatus.REJECTED for one in ranked)


@given(entries)
def test_ranked_by_anls_means_within_budget_and_in_order(made):
    ranked = [row.entry for row in rank_by_anls(made, BUDGET) if row.rank]
    epsilons = [one.results.epsilon for one in ranked if one.results.epsilon is not None]
    assert len(epsilons) == len(ranked)
    assert all(epsilon <= BUDGET for epsilon in epsilons)
    scores = [one.results.anls for one in ranked if one.results.anls is not None]
    assert len(scores) == len(ranked)
    assert scores == sorted(scores, reverse=True)
    assert not any(one.status is ResultStatus.REJECTED for one in ranked)


@given(entries.filter(bool), st.floats(0, 0.5), kinds)
def test_a_better_score_never_costs_a_rank(made, gain, kind):
    before = {row.entry.run: row.rank for row in rank(made, kind, LIMITS)}
    first = made[0]
    if before[first.run] is None:
        return
    results = first.results
    gains = {"anls": results.anls + gain, "bytes_total": max(0, (results.bytes_total or 0) - 1)}
    better = replace(first, results=results.model_copy(update=gains))
    after = {row.entry.run: row.rank or 0 for row in rank([better, *made[1:]], kind, LIMITS)}
    assert 1 <= after[first.run] <= (before[first.run] or 0)


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_a_shown_value_is_never_better_than_the_true_one(value):
    assert float(rounded_up(value)) >= value
