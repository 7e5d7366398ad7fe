import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from starter_kit.dp.keystream import Keystream
from starter_kit.dp.sampling import poisson_sample

PROVIDERS = [f"provider-{n}" for n in range(40)]


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
    correlations = np.corrcoef(rows.T)[np.triu_indices(len(PROVIDERS), 1)]
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
