from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluator.mechanisms.sampling import Binomial, Exactly
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.sampling import draw, fixed_size_sample, poisson_sample

PROVIDERS = [f"provider-{n}" for n in range(40)]
NAMES = [f"p{n}" for n in range(30)]


@given(st.lists(st.integers(), unique=True), st.floats(0.001, 1))
def test_a_sample_is_a_subsequence_of_the_population(population: list[int], rate: float) -> None:
    sample = poisson_sample(population, rate, Keystream())
    assert sample == [member for member in population if member in sample]


def test_everybody_is_sampled_at_rate_one() -> None:
    assert poisson_sample(PROVIDERS, 1.0, Keystream()) == PROVIDERS


def test_the_sample_size_is_binomial_not_fixed() -> None:
    keystream = Keystream()
    sizes = [len(poisson_sample(PROVIDERS, 0.2, keystream)) for _ in range(4000)]
    counts = np.bincount(sizes, minlength=len(PROVIDERS) + 1)
    expected = stats.binom.pmf(np.arange(len(counts)), len(PROVIDERS), 0.2) * 4000
    often = expected >= 5
    observed = np.append(counts[often], counts[~often].sum())
    predicted = np.append(expected[often], expected[~often].sum())
    assert stats.chisquare(observed, predicted).pvalue > 1e-6


def test_providers_are_sampled_independently_of_one_another() -> None:
    keystream = Keystream()
    rows = np.zeros((4000, len(PROVIDERS)))
    for row in rows:
        row[[PROVIDERS.index(name) for name in poisson_sample(PROVIDERS, 0.3, keystream)]] = 1
    correlations = np.asarray(np.corrcoef(rows.T))[np.triu_indices(len(PROVIDERS), 1)]
    assert np.abs(rows.mean(axis=0) - 0.3).max() < 6 * np.sqrt(0.3 * 0.7 / 4000)
    assert np.abs(correlations).max() < 6 / np.sqrt(4000)


def test_an_empty_sample_is_a_legal_outcome() -> None:
    keystream = Keystream()
    assert any(poisson_sample(PROVIDERS[:3], 0.1, keystream) == [] for _ in range(200))
    assert poisson_sample([], 0.5, keystream) == []


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan")])
def test_a_rate_outside_zero_to_one_is_rejected(rate: float) -> None:
    with pytest.raises(ValueError, match="sampling rate"):
        poisson_sample(PROVIDERS, rate, Keystream())


def test_a_law_draws_by_coins_or_a_fixed_number() -> None:
    keystream = Keystream()
    sizes = {len(draw(Binomial(30, 0.5), NAMES, keystream)) for _ in range(200)}
    assert len(sizes) > 1
    assert {len(draw(Exactly(6), NAMES, keystream)) for _ in range(200)} == {6}


def test_every_member_is_drawn_equally_often() -> None:
    keystream, drawn = Keystream(), Counter[str]()
    for _ in range(3000):
        drawn.update(draw(Exactly(6), NAMES, keystream))
    # The test fails by chance once in 10⁹ runs.
    assert stats.chisquare([drawn[name] for name in NAMES]).pvalue > 1e-9


def test_a_fixed_sample_has_its_size_without_repetition_in_the_populations_order() -> None:
    keystream = Keystream()
    draws = [fixed_size_sample(NAMES, 6, keystream) for _ in range(200)]
    assert all(len(set(draw)) == 6 and draw == sorted(draw, key=NAMES.index) for draw in draws)
    assert len({tuple(draw) for draw in draws}) > 190
    assert fixed_size_sample(NAMES, 0, keystream) == []
    assert fixed_size_sample(NAMES, 30, keystream) == NAMES
    with pytest.raises(ValueError, match="31 of 30"):
        fixed_size_sample(NAMES, 31, keystream)


def test_pairs_of_a_fixed_sample_are_as_likely_as_they_should_be() -> None:
    keystream = Keystream()
    together = np.mean([{"p0", "p1"} <= set(fixed_size_sample(NAMES, 6, keystream)) for _ in range(4000)])
    expected = 6 / 30 * 5 / 29
    assert abs(together - expected) < 6.5 * np.sqrt(expected / 4000)
