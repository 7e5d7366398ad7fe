from collections import Counter

import numpy as np
import pytest
from scipy import stats

from evaluator.errors import ProblemError
from evaluator.mechanisms.scenario import Sampling, Scenario
from evaluator.records import lines
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.provider_sampling import FixedSizeSampling, PoissonSampling
from starter_kit.dp.sampling import fixed_size_sample

SIZES = {0: 30, 1: 40, 2: 50, 3: 60}
NAMES = [f"p{n}" for n in range(30)]


def test_coins_are_accounted_and_recorded_as_flipped() -> None:
    both = PoissonSampling(provider_rate=0.5, client_rate=0.25)
    assert both.expected(SIZES) == 180 * 0.125
    assert both.most_clients(SIZES) == 4
    assert both.recorded(SIZES) == lines.TwoStagePoisson(client_rate=0.25, provider_rate=0.5)
    assert PoissonSampling(0.5).recorded(SIZES) == lines.GlobalPoisson(provider_rate=0.5)
    scenario = Scenario(**both.scenario(SIZES))
    assert (scenario.sampling, scenario.client_rate, scenario.provider_rate) == (
        Sampling.TWO_STAGE_POISSON,
        0.25,
        0.5,
    )


def test_the_rate_of_fixed_numbers_is_that_of_the_client_with_fewest_providers() -> None:
    fixed = FixedSizeSampling(clients_per_round=2, providers_per_client=6)
    assert fixed.recorded(SIZES) == lines.FixedSize(clients_per_round=2, provider_rate=6 / 30)
    scenario = Scenario(**fixed.scenario(SIZES))
    assert (scenario.sampling, scenario.client_rate, scenario.provider_rate) == (
        Sampling.FIXED_SIZE,
        0.5,
        0.2,
    )
    assert (fixed.expected(SIZES), fixed.most_clients(SIZES)) == (12, 2)


def test_every_client_and_every_provider_is_drawn_equally_often() -> None:
    fixed, keystream = FixedSizeSampling(2, 6), Keystream()
    clients, providers = Counter[int](), Counter[str]()
    for _ in range(3000):
        clients.update(fixed.clients(list(SIZES), keystream))
        providers.update(fixed.providers(NAMES, keystream))
    assert stats.chisquare([clients[client] for client in SIZES]).pvalue > 1e-6
    assert stats.chisquare([providers[name] for name in NAMES]).pvalue > 1e-6


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
    assert abs(together - expected) < 6 * np.sqrt(expected / 4000)


@pytest.mark.parametrize(
    ("sampling", "name"), [((5, 6), "clients_per_round"), ((2, 31), "providers_per_client")]
)
def test_more_than_there_are_is_rejected_by_name(sampling: tuple[int, int], name: str) -> None:
    with pytest.raises(ProblemError) as caught:
        FixedSizeSampling(*sampling).check(SIZES)
    assert caught.value.problem.where == name
    FixedSizeSampling(4, 30).check(SIZES)
