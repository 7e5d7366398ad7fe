"""Which learning rate is tested, and which candidate docs/private-rows.md says beats DP-LoRA."""

from collections.abc import Sequence

from tests.studies.catalog import STUDIES
from tests.studies.private_rows import (
    CANDIDATES,
    MOST_TRIALS,
    TUNING_SEED,
    Candidate,
    Comparison,
    beating,
    chosen,
)
from tests.studies.reproduction.rows import EPSILONS, Outcome, Row

TWO_RATES = Candidate("a", "A", ("rounds=2",), {1: (1, 2), 4: (1, 2), 8: (3,)})
ONE_EPSILON = Candidate("b", "B", ("rounds=3",), {1: (1,)})


def outcome(row: Row, anls: float, seed: int) -> Outcome:
    return Outcome(
        row=row.name,
        seed=seed,
        anls=anls,
        accuracy=0.5,
        bytes_total=1,
        epsilon=1.0,
        settings_sha256=row.settings_sha256,
        made_with="kit 1, torch 2, m",
    )


def comparison(epsilon: int, candidate: Sequence[float], baseline: Sequence[float]) -> Comparison:
    row = TWO_RATES.row(epsilon, 1)
    ours, theirs = (
        [outcome(row, anls, seed) for seed, anls in enumerate(scores, start=1)]
        for scores in (candidate, baseline)
    )
    return Comparison(TWO_RATES, epsilon, 1, ours, theirs)


def test_the_rate_with_the_best_trial_is_tested_at_each_epsilon() -> None:
    scores = {(1, 1): 0.6, (1, 2): 0.5, (4, 1): 0.6, (4, 2): 0.7, (8, 3): 0.8}
    trials = [
        outcome(TWO_RATES.row(epsilon, rate), anls, TUNING_SEED) for (epsilon, rate), anls in scores.items()
    ]
    trials.append(outcome(ONE_EPSILON.row(1, 1), 0.9, TUNING_SEED))
    assert chosen([ONE_EPSILON, TWO_RATES], trials) == {TWO_RATES: {1: 1, 4: 2, 8: 3}}


def test_candidates_are_tested_whose_trials_are_above_the_baselines_at_each_epsilon() -> None:
    baseline = Candidate("again", "DP-LoRA", (), {1: (1,), 4: (1,), 8: (1,)})
    trials = [outcome(baseline.row(epsilon, 1), 0.6, TUNING_SEED) for epsilon in EPSILONS]
    tried = [(1, 2), (4, 1), (8, 3)]
    above = [outcome(TWO_RATES.row(*each), 0.7, TUNING_SEED) for each in tried]
    partly = [outcome(TWO_RATES.row(1, 2), 0.6, TUNING_SEED), *above[1:]]
    assert list(chosen([baseline, TWO_RATES], [*trials, *above])) == [TWO_RATES, baseline]
    assert list(chosen([baseline, TWO_RATES], [*trials, *partly])) == [baseline]


def test_a_candidate_beats_the_baseline_if_every_seed_is_higher_at_every_epsilon() -> None:
    higher = comparison(1, [0.7, 0.8], [0.6, 0.7])
    assert beating([higher, comparison(4, [0.8, 0.9], [0.7, 0.8])]) == [TWO_RATES]
    assert beating([higher, comparison(4, [0.8, 0.7], [0.7, 0.8])]) == []


def test_a_candidate_without_all_seeds_beats_nothing() -> None:
    assert beating([comparison(1, [0.7], [0.6, 0.6])]) == []


def test_the_outcomes_are_of_the_candidates_as_they_are() -> None:
    results = STUDIES["private-rows"]().read()
    rows = [row for one in CANDIDATES for epsilon in EPSILONS for row in one.rows(epsilon).values()]
    settings = {(row.name, row.settings_sha256) for row in rows}
    assert {(one.row, one.settings_sha256) for one in (*results.trials, *results.tested)} <= settings


def test_no_candidate_had_more_trials_than_a_counted_private_row() -> None:
    assert max(len(one.rows(epsilon)) for one in CANDIDATES for epsilon in EPSILONS) <= MOST_TRIALS
