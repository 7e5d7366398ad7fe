"""The accountant of the published script, with its numbers."""

import logging
import math
from collections.abc import Callable

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

from evaluator.accounting import rdp
from evaluator.mechanisms.events import Event, FixedSizeGaussian, Gaussian, PoissonGaussian, UnsupportedError
from tests.evaluator.accounting.compositions import (
    DELTA,
    REPLACE,
    fixed_size,
    gaussian,
    laplace,
    poisson,
    two_stage,
)

PUBLISHED = [
    (1000 / 4149, 0.83251953125, 10, 9.126),
    (1000 / 4149, 1.25244140625, 10, 4.546),
    (1000 / 4149, 3.3203125, 10, 1.103),
    (0.2, 0.771484375, 10, 9.205),
    (0.2, 1.136474609375, 10, 4.597),
    (0.2, 2.8515625, 10, 1.114),
    (0.025, 1.145, 5, 1.0057),
    (0.025, 0.637, 5, 3.996),
    (0.025, 0.468, 5, 8.0039),
    (0.025, 1.145, 50, 1.336),
    (0.0225, 1.21, 30, 0.9978),
    (0.04, 1.5, 2250, 7.32911117143),
]


@pytest.mark.parametrize(("rate", "noise", "rounds", "expected"), PUBLISHED)
def test_published_settings_have_their_epsilon(
    rate: float, noise: float, rounds: int, expected: float
) -> None:
    assert rdp.epsilon([poisson(rate, noise, rounds)], DELTA) == pytest.approx(expected, abs=0.005)


def converted(divergence: Callable[[float], float]) -> float:
    """ε at DELTA of a Rényi divergence: Canonne, Kamath and Steinke (2020), proposition 12."""
    return min(
        divergence(a) + math.log1p(-1 / a) - math.log(DELTA * a) / (a - 1) for a in rdp.ORDERS if a < 25
    )


def test_two_stages_are_a_visible_mixture() -> None:
    client_rate, noise, rounds = 0.2, 1.1, 10

    def divergence(a: float) -> float:
        active = math.exp((a - 1) * a / (2 * noise**2))
        return rounds * math.log(1 - client_rate + client_rate * active) / (a - 1)

    found = rdp.epsilon([two_stage(client_rate, gaussian(noise), rounds)], DELTA)
    assert found == pytest.approx(converted(divergence), rel=1e-9)


def test_a_client_that_always_takes_part_makes_no_second_stage() -> None:
    inner = poisson(0.2, 1.0)
    assert rdp.epsilon([two_stage(1, inner, 7)], DELTA) == pytest.approx(rdp.epsilon([inner] * 7, DELTA))


def test_a_fixed_size_is_accounted_at_half_of_the_noise() -> None:
    assert rdp.epsilon([fixed_size(0.1, 2.0, 5)], DELTA) == rdp.epsilon([poisson(0.1, 1.0, 5)], DELTA)


def test_replacement_of_a_plain_gaussian_is_twice_the_distance() -> None:
    assert rdp.epsilon([gaussian(2.0, adjacency=REPLACE)], DELTA) == rdp.epsilon([gaussian(1.0)], DELTA)


def test_laplace_noise_has_its_known_divergence() -> None:
    noise, rounds = 2.0, 20

    def divergence(a: float) -> float:
        peak = a / (2 * a - 1) * math.exp((a - 1) / noise) + (a - 1) / (2 * a - 1) * math.exp(-a / noise)
        return rounds * math.log(peak) / (a - 1)

    assert rdp.epsilon([laplace(noise, rounds)], DELTA) == pytest.approx(converted(divergence), rel=1e-9)


@pytest.mark.parametrize(
    "event", [poisson(0.1, 1, 1, REPLACE), fixed_size(0.1, 1, 1, REPLACE)], ids=lambda e: e.type
)
def test_what_has_no_known_bound_is_rejected(event: PoissonGaussian | FixedSizeGaussian) -> None:
    with pytest.raises(UnsupportedError, match="under replacement"):
        rdp.epsilon([event], DELTA)
    with pytest.raises(UnsupportedError, match="under replacement"):
        rdp.epsilon([two_stage(0.5, event)], DELTA)


@pytest.mark.parametrize(
    "events",
    [
        [poisson(0.2, 0.77, 10)],
        [poisson(0.001, 4.0, 2000)],
        [poisson(0.3, 30.0, 2)],
        [poisson(0.5, 0.3, 3), poisson(0.01, 1.5, 40)],
        [gaussian(1.7, 5), laplace(3.0, 4)],
        [two_stage(0.2, poisson(0.1125, 1.21), 30)],
        [fixed_size(0.05, 2.5, 100)],
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", [1e-9, DELTA, 0.05])
def test_the_order_that_is_found_is_the_best_of_all(events: list[Event], delta: float) -> None:
    divergences = sum(event.rounds * rdp._divergences(event, rdp.ORDERS) for event in events)
    assert rdp.epsilon(events, delta) == compute_epsilon(rdp.ORDERS, divergences, delta)[0]


def test_hardly_any_noise_is_still_an_answer() -> None:
    assert rdp.epsilon([two_stage(0.5, gaussian(0.1), 10_000)], DELTA) > 1e5


def test_no_rounds_cost_nothing() -> None:
    assert rdp.epsilon([], DELTA) == 0


@pytest.mark.parametrize("delta", [0, 1, -1e-5, math.nan])
def test_delta_out_of_range_is_rejected(delta: float) -> None:
    with pytest.raises(ValueError, match="δ"):
        rdp.epsilon([gaussian(1)], delta)


def test_the_log_is_not_flooded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="absl"):
        logging.getLogger("absl").warning("something else")
        rdp.epsilon([poisson(0.2, 0.77, 10)], DELTA)  # several orders of which don't converge
    assert [record.getMessage() for record in caplog.records] == ["something else"]


@pytest.mark.parametrize("runs", [1, 2.5, 10, 300])
@pytest.mark.parametrize("event", [poisson(0.2, 2.8515625, 10), gaussian(4, 7)], ids=["poisson", "gaussian"])
def test_the_best_of_several_runs_costs_what_another_library_says(
    event: PoissonGaussian | Gaussian, runs: float
) -> None:
    noise = GaussianDpEvent(event.effective_noise_multiplier)
    one = PoissonSampledDpEvent(event.sampling_rate, noise) if isinstance(event, PoissonGaussian) else noise
    accountant = RdpAccountant(rdp.ORDERS)
    accountant.compose(RepeatAndSelectDpEvent(SelfComposedDpEvent(one, event.rounds), runs, math.inf))
    assert rdp.best_of([event], DELTA, runs) == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-12)


def test_the_best_of_ten_costs_what_was_worked_out() -> None:
    assert rdp.best_of([poisson(0.2, 2.8515625, 10)], DELTA, 10) == pytest.approx(2.343, abs=0.001)


def test_the_best_of_several_two_stage_runs_is_bounded() -> None:
    inner = poisson(0.1125, 1.21)
    once = rdp.epsilon([two_stage(0.2, inner, 30)], DELTA)
    best = [rdp.best_of([two_stage(0.2, inner, 30)], DELTA, runs) for runs in (1, 10, 100)]
    assert once < best[0] < best[1] < best[2] < math.inf
    # A client that always takes part is no stage.
    sampled = rdp.best_of([two_stage(1, inner, 30)], DELTA, 10)
    assert sampled == pytest.approx(rdp.best_of([poisson(0.1125, 1.21, 30)], DELTA, 10), rel=1e-9)


@pytest.mark.parametrize("runs", [0, -1, math.nan, math.inf])
def test_the_mean_number_of_runs_is_positive(runs: float) -> None:
    with pytest.raises(ValueError, match="mean number"):
        rdp.best_of([gaussian(1)], DELTA, runs)
