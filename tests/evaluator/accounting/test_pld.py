"""The official accountant against worked numbers, closed forms, another library, and sampled outputs."""

import math
import tracemalloc

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, from_laplace_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from evaluator.accounting import pld, rdp
from evaluator.mechanisms.events import AdmmLaplace, Event, FedAvgLaplace
from tests.evaluator.accounting.compositions import (
    ADD_REMOVE,
    DELTA,
    REPLACE,
    Either,
    delta_of,
    fixed_size,
    gaussian,
    gaussian_delta,
    laplace,
    poisson,
    two_stage,
)

CENTRAL, CENTRAL_NOISE = 1000 / 4149, (0.83251953125, 1.25244140625, 3.3203125)
FEDERATED, FEDERATED_NOISE = 0.2, (0.771484375, 1.13647460937, 2.8515625)
ROOT_2 = math.sqrt(2)

# By an independent implementation on a grid of 1e-4; right to the digits given.
WORKED: list[tuple[str, list[Event], float]] = [
    ("one Gaussian release", [gaussian(1)], 4.3772),
    ("paper, centralized, 8", [poisson(CENTRAL, CENTRAL_NOISE[0], 10)], 7.979),
    ("paper, centralized, 4", [poisson(CENTRAL, CENTRAL_NOISE[1], 10)], 3.982),
    ("paper, centralized, 1", [poisson(CENTRAL, CENTRAL_NOISE[2], 10)], 0.985),
    ("paper, federated, 8, product", [poisson(FEDERATED, FEDERATED_NOISE[0], 10)], 7.984),
    ("paper, federated, 4, product", [poisson(FEDERATED, FEDERATED_NOISE[1], 10)], 3.984),
    ("paper, federated, 1, product", [poisson(FEDERATED, FEDERATED_NOISE[2], 10)], 0.988),
    ("paper, federated, 8, two-stage", [two_stage(0.2, gaussian(FEDERATED_NOISE[0]), 10)], 14.46),
    ("paper, federated, 4, two-stage", [two_stage(0.2, gaussian(FEDERATED_NOISE[1]), 10)], 8.62),
    ("paper, federated, 1, two-stage", [two_stage(0.2, gaussian(FEDERATED_NOISE[2]), 10)], 2.78),
    ("one federated round, product", [poisson(0.2, FEDERATED_NOISE[0])], 3.832),
    ("one federated round, two-stage", [two_stage(0.2, gaussian(FEDERATED_NOISE[0]))], 5.424),
    ("kit, 1, product", [poisson(0.025, 1.145, 5)], 0.527),
    ("kit, 4, product", [poisson(0.025, 0.637, 5)], 3.078),
    ("kit, 8, product", [poisson(0.025, 0.468, 5)], 6.408),
    ("kit, 1, product, fifty rounds", [poisson(0.025, 1.145, 50)], 1.004),
    ("kit, 1, two-stage", [two_stage(0.2, poisson(0.125, 1.145), 5)], 1.53),
    (
        "kit, 1, two-stage, twice the noise variance",
        [two_stage(0.2, poisson(0.125, 1.145 * ROOT_2), 5)],
        0.76,
    ),
    ("kit, 1, fixed size", [fixed_size(0.025, 1.145, 5)], 4.027),
    ("kit, 1, two-stage and fixed size", [two_stage(0.2, fixed_size(0.125, 1.145), 5)], 6.05),
    ("the same, twice the noise variance", [two_stage(0.2, fixed_size(0.125, 1.145 * ROOT_2), 5)], 3.10),
    ("winner, product", [poisson(0.0225, 1.21, 30)], 0.665),
    ("winner, two-stage", [two_stage(0.2, poisson(0.1125, 1.21), 30)], 1.909),
    (
        "winner, two-stage, twice the noise variance",
        [two_stage(0.2, poisson(0.1125, 1.21 * ROOT_2), 30)],
        1.014,
    ),
    ("a test value of Opacus", [poisson(0.04, 1.5, 2250)], 6.769),
    ("Gaussian, replace", [gaussian(1, adjacency=REPLACE)], 9.997),
    ("Poisson, replace", [poisson(0.2, 2.8516, 10, REPLACE)], 1.755),
    ("known number of providers, 1", [fixed_size(CENTRAL, CENTRAL_NOISE[2], 10)], 2.56),
    ("known number of providers, 8", [fixed_size(CENTRAL, CENTRAL_NOISE[0], 10)], 28.6),
    ("two draws of noise", [poisson(0.2, 1.1365 * ROOT_2, 10)], 2.251),
    ("half of a draw", [poisson(0.2, 1.1365 / ROOT_2, 10)], 7.405),
    ("Laplace, a hundred of ε 0.1", [laplace(10, 100)], 4.220),
    ("Laplace, ten of ε 1", [laplace(1, 10)], 9.990),
    ("three budgets, centralized", [poisson(CENTRAL, noise, 10) for noise in CENTRAL_NOISE], 8.801),
    ("three budgets, federated", [poisson(FEDERATED, noise, 10) for noise in FEDERATED_NOISE], 8.721),
    ("global Poisson at its budget", [poisson(0.1, 2.4097, 30)], 1.0),
]


@pytest.mark.parametrize(
    ("events", "expected"), [case[1:] for case in WORKED], ids=[case[0] for case in WORKED]
)
def test_worked_numbers(events: list[Event], expected: float) -> None:
    assert pld.epsilon(events, DELTA) == pytest.approx(expected, abs=0.05 if expected > 20 else 0.005)


@pytest.mark.parametrize(
    ("noise", "expected"), [(CENTRAL_NOISE[0], 6.61), (CENTRAL_NOISE[1], 3.27), (CENTRAL_NOISE[2], 0.803)]
)
def test_a_larger_delta_has_its_own_epsilon(noise: float, expected: float) -> None:
    assert pld.epsilon([poisson(CENTRAL, noise, 10)], 1e-4) == pytest.approx(expected, abs=0.005)


def test_the_published_noise_misses_its_delta_under_two_stages() -> None:
    missed = [
        delta_of([two_stage(0.2, gaussian(noise), 10)], epsilon)
        for noise, epsilon in zip(FEDERATED_NOISE, (8, 4, 1), strict=True)
    ]
    assert missed[0] == pytest.approx(4.6705e-3, abs=1e-6)
    assert missed == pytest.approx([4.67e-3, 9.04e-3, 1.158e-2], rel=2e-3)


def binomial_two_stage_delta(client_rate: float, noise: float, rounds: int, epsilon: float) -> float:
    """δ(ε) by the number of rounds in which the client took part, where all of its providers do: no code in common."""
    return sum(
        binom.pmf(active, rounds, client_rate) * gaussian_delta(epsilon, noise, active)
        for active in range(1, rounds + 1)
    )


@settings(max_examples=20, deadline=None)
@given(st.floats(0.02, 0.98), st.floats(0.6, 5), st.integers(1, 40), st.floats(0.1, 8))
def test_two_stages_of_plain_gaussians_are_a_binomial_sum(
    client_rate: float, noise: float, rounds: int, epsilon: float
) -> None:
    exact = binomial_two_stage_delta(client_rate, noise, rounds, epsilon)
    found = delta_of([two_stage(client_rate, gaussian(noise), rounds)], epsilon)
    assert exact * (1 - 1e-9) - 1e-12 <= found <= exact * (1 + 1e-3) + 1e-9


def test_two_stages_agree_with_sampled_outputs() -> None:
    client_rate, rate, noise, rounds, epsilon = 0.3, 0.4, 0.7, 6, 1.5
    draws, rng = 400_000, np.random.default_rng(7)
    active = rng.random((draws, rounds)) < client_rate
    taking_part = rng.random((draws, rounds)) < rate
    without = rng.normal(0, noise, (draws, rounds))

    def loss_of_having_it(outputs: np.ndarray) -> np.ndarray:
        ratio = 1 - rate + rate * np.exp((2 * outputs - 1) / (2 * noise**2))
        return np.where(active, np.log(ratio), 0).sum(axis=1)

    estimates = []
    for losses in (loss_of_having_it(without + taking_part), -loss_of_having_it(without)):
        excess = np.maximum(0, 1 - np.exp(epsilon - losses))
        estimates.append((excess.mean(), excess.std() / math.sqrt(draws)))
    (mean, error) = max(estimates)
    assert delta_of([two_stage(client_rate, poisson(rate, noise), rounds)], epsilon) == pytest.approx(
        mean, abs=4 * error
    )


RELATIONS = {
    ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
    REPLACE: NeighboringRelation.REPLACE_ONE,
}
PAIRS = [(0.2, 0.7715, 10), (0.025, 0.468, 5), (0.0225, 1.21, 30), (1, 1, 1), (0.01, 0.8, 100), (0.9, 5, 10)]


@pytest.mark.parametrize(("rate", "noise", "rounds"), PAIRS)
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE])
def test_another_library_on_a_fine_grid_agrees(
    rate: float, noise: float, rounds: int, adjacency: Either
) -> None:
    theirs = from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        value_discretization_interval=1e-4,
        neighboring_relation=RELATIONS[adjacency],
    ).self_compose(rounds)
    expected = theirs.get_epsilon_for_delta(DELTA)
    found = pld.epsilon([poisson(rate, noise, rounds, adjacency)], DELTA)
    assert expected - 1e-6 <= found <= expected * (1 + 1e-3)


def test_another_library_agrees_on_laplace_noise() -> None:
    theirs = from_laplace_mechanism(3.0, value_discretization_interval=1e-4).self_compose(20)
    assert pld.epsilon([laplace(3, 20)], DELTA) == pytest.approx(
        theirs.get_epsilon_for_delta(DELTA), rel=1e-4
    )


def exact_gaussian_epsilon(noise: float, rounds: int) -> float:
    def excess(epsilon: float) -> float:
        return gaussian_delta(epsilon, noise, rounds) - DELTA

    mu = math.sqrt(rounds) / noise
    return float(brentq(excess, 1e-12, mu**2 / 2 + 10 * mu, xtol=1e-14)) if excess(1e-12) > 0 else 0.0


rates = st.floats(0.005, 1)
noises = st.floats(0.4, 8)
round_counts = st.integers(1, 60)
few = settings(max_examples=20, deadline=None)


@few
@given(st.floats(0.15, 100), st.integers(1, 10_000))
def test_the_exact_gaussian_epsilon_is_bounded_tightly(noise: float, rounds: int) -> None:
    exact = exact_gaussian_epsilon(noise, rounds)
    assert exact * (1 - 1e-9) <= pld.epsilon([gaussian(noise, rounds)], DELTA) <= exact * (1 + 2e-4) + 1e-6


@few
@given(rates, noises, round_counts)
def test_pld_is_never_above_rdp(rate: float, noise: float, rounds: int) -> None:
    for event in (poisson(rate, noise, rounds), two_stage(0.3, poisson(rate, noise), rounds)):
        assert pld.epsilon([event], DELTA) <= rdp.epsilon([event], DELTA) + 1e-6


@few
@given(rates, noises, round_counts)
def test_epsilon_grows_with_rounds_and_rate_and_falls_with_noise(
    rate: float, noise: float, rounds: int
) -> None:
    here = pld.epsilon([poisson(rate, noise, rounds)], DELTA)
    assert pld.epsilon([poisson(rate, noise, rounds + 5)], DELTA) >= here
    assert pld.epsilon([poisson(min(1.0, rate * 1.2), noise, rounds)], DELTA) >= here * (1 - 1e-5)
    assert pld.epsilon([poisson(rate, noise * 1.2, rounds)], DELTA) <= here


@few
@given(st.floats(0.02, 1), st.floats(0.02, 1), noises, round_counts)
def test_two_stages_cost_at_least_their_product(
    client_rate: float, rate: float, noise: float, rounds: int
) -> None:
    together = pld.epsilon([two_stage(client_rate, poisson(rate, noise), rounds)], DELTA)
    assert together >= pld.epsilon([poisson(client_rate * rate, noise, rounds)], DELTA) * (1 - 1e-4) - 1e-6


@few
@given(rates, noises, st.integers(2, 30))
def test_rounds_in_any_grouping_and_order_are_the_same(rate: float, noise: float, rounds: int) -> None:
    one, other = poisson(rate, noise), poisson(rate / 2, noise * 2, 3)
    together = pld.epsilon([poisson(rate, noise, 2 * rounds), other], DELTA)
    assert pld.epsilon([other, *[one] * (2 * rounds)], DELTA) == pytest.approx(together, rel=1e-9)


@few
@given(rates, noises, st.integers(1, 20))
def test_a_composition_of_halves_is_the_whole(rate: float, noise: float, rounds: int) -> None:
    whole = pld.epsilon([poisson(rate, noise, 2 * rounds)], DELTA)
    nearly_equal = [poisson(rate, noise, rounds), poisson(rate, noise * (1 + 1e-9), rounds)]
    assert pld.epsilon(nearly_equal, DELTA) == pytest.approx(whole, rel=1e-4, abs=1e-6)


def test_different_rounds_are_composed_and_not_averaged() -> None:
    # Unsampled Gaussian mechanisms compose as one with 1/σ² = Σ 1/σᵢ².
    different = [gaussian(1.5), gaussian(2.0), gaussian(4.0)]
    exact = exact_gaussian_epsilon(
        1 / math.sqrt(sum(1 / event.effective_noise_multiplier**2 for event in different)), 1
    )
    assert exact <= pld.epsilon(different, DELTA) <= exact * (1 + 1e-4)
    quiet_round = [poisson(0.2, 8.0, 9), poisson(0.2, 0.5)]
    assert pld.epsilon(quiet_round, DELTA) > 2 * pld.epsilon([poisson(0.2, (9 * 8.0 + 0.5) / 10, 10)], DELTA)


def test_a_noisy_clipping_quantile_is_paid_for_by_more_noise_on_the_sum() -> None:
    # Adaptive clipping counts with noise σ_b = 10 at sensitivity ½; the sum's noise makes up for it.
    adaptive = pld.epsilon([gaussian(1.0012523), gaussian(2 * 10.0)], DELTA)
    assert adaptive == pytest.approx(pld.epsilon([gaussian(1.0)], DELTA), rel=1e-5)


def test_output_perturbation_counts_as_laplace_noise_of_its_sensitivity() -> None:
    fedavg = FedAvgLaplace(clip_norm=2, learning_rate=0.1, examples=40, scale=0.1, rounds=100)
    assert pld.epsilon([fedavg], DELTA) == pytest.approx(pld.epsilon([laplace(10, 100)], DELTA), rel=1e-9)
    admm = AdmmLaplace(clip_norm=2, penalty=4, examples=50, scale=0.1, rounds=100)
    assert pld.epsilon([admm], DELTA) == pytest.approx(pld.epsilon([laplace(10, 100)], DELTA), rel=1e-9)


def test_fixed_size_replacement_is_between_its_neighbors() -> None:
    poisson_twice = pld.epsilon([poisson(0.2, 1.5, 10)], DELTA)
    assert (
        poisson_twice
        <= pld.epsilon([fixed_size(0.2, 3.0, 10, REPLACE)], DELTA)
        <= pld.epsilon([gaussian(3.0, 10, REPLACE)], DELTA)
    )


def test_epsilon_and_delta_are_inverse() -> None:
    events: list[Event] = [two_stage(0.2, poisson(0.5, 1.0), 10), poisson(0.1, 0.8, 5)]
    for delta in (1e-8, 1e-5, 1e-2):
        assert delta_of(events, pld.epsilon(events, delta)) == pytest.approx(delta, rel=1e-9)


def test_no_rounds_cost_nothing() -> None:
    assert pld.epsilon([], DELTA) == delta_of([], 1.0) == 0
    assert pld.precision([]) == "exact"


def test_hardly_any_participation_costs_nothing() -> None:
    assert pld.epsilon([poisson(1e-9, 0.1)], DELTA) == 0


def test_a_delta_below_the_rounding_errors_has_no_epsilon() -> None:
    assert pld.epsilon([poisson(0.5, 1.0, 10_000)], 1e-14) == math.inf


HOSTILE: list[tuple[str, list[Event]]] = [
    ("long and nearly without noise", [poisson(0.5, 0.1, 10_000)]),
    ("long, fixed size and nearly without noise", [fixed_size(0.5, 0.1, 10_000)]),
    (
        "256 different rounds nearly without noise",
        [poisson(0.5, 0.1 + step / 1000, 40) for step in range(256)],
    ),
    ("256 rounds from least to most noise", [poisson(0.5, 0.1 * 1.04**step, 40) for step in range(256)]),
    ("a million rounds", [poisson(0.001, 1.0, 1_000_000)]),
    ("seldom, and then without noise", [poisson(1e-9, 0.1, 1_000_000)]),
    ("a quiet round among noisy ones", [poisson(0.5, 0.1), poisson(0.001, 5.0, 10_000)]),
    ("hardly any client", [two_stage(1e-9, gaussian(0.1), 1_000_000)]),
    ("hardly any loss", [gaussian(1e4)]),
]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("events", [case[1] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_extreme_rounds_are_bounded_in_memory_and_have_a_finite_epsilon(events: list[Event]) -> None:
    tracemalloc.start()
    try:
        epsilon = pld.epsilon(events, DELTA)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 <= epsilon < math.inf
    assert peak < 300e6


def test_a_coarse_grid_is_still_an_upper_bound() -> None:
    noisy = [gaussian(0.1 + step / 1000, 40) for step in range(256)]
    exact = exact_gaussian_epsilon(
        1 / math.sqrt(sum(event.rounds / event.effective_noise_multiplier**2 for event in noisy)), 1
    )
    assert exact <= pld.epsilon(noisy, DELTA) <= exact * 1.01


@pytest.mark.parametrize("delta", [0, 1, -1e-5, math.nan])
def test_delta_out_of_range_is_rejected(delta: float) -> None:
    with pytest.raises(ValueError, match="δ"):
        pld.epsilon([gaussian(1)], delta)
