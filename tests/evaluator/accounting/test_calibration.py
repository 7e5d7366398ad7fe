"""The noise for a budget, against worked numbers and the accountant itself."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.accounting import pld
from evaluator.accounting.calibration import noise_multiplier, noise_multiplier_for
from evaluator.mechanisms.events import Event
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import Poisson
from evaluator.mechanisms.values import MIN_NOISE_MULTIPLIER
from tests.evaluator.accounting.compositions import (
    DELTA,
    REPLACE,
    fixed_size,
    gaussian,
    laplace,
    poisson,
    two_stage,
)

EventsAt = Callable[[float], Sequence[Event]]


def globally(rate: float, rounds: int) -> EventsAt:
    return lambda noise: [poisson(rate, noise, rounds)]


def staged(client_rate: float, rate: float, rounds: int) -> EventsAt:
    return lambda noise: [
        two_stage(client_rate, poisson(rate, noise) if rate < 1 else gaussian(noise), rounds)
    ]


@pytest.mark.parametrize(
    ("events_at", "expected"),
    [
        (globally(0.2, 10), (2.826, 1.134, 0.771)),
        (globally(0.1, 10), (1.741, 0.850, 0.612)),
        (globally(0.1, 30), (2.410, 1.023, 0.729)),
        (globally(0.0225, 30), (1.036, 0.636, 0.487)),
        (staged(0.2, 1, 10), (6.935, 2.102, 1.204)),
        (staged(0.2, 0.125, 5), (1.407, 0.711, 0.495)),
        (staged(0.2, 0.1125, 30), (1.725, 0.838, 0.599)),
    ],
)
def test_noise_for_one_four_and_eight(events_at: EventsAt, expected: tuple[float, ...]) -> None:
    found = [noise_multiplier(epsilon, DELTA, events_at) for epsilon in (1, 4, 8)]
    assert found == pytest.approx(expected, abs=1e-3)


EVERY_KIND: list[EventsAt] = [
    lambda noise: [gaussian(noise, 5)],
    lambda noise: [gaussian(noise, 5, REPLACE)],
    lambda noise: [poisson(0.1, noise, 20, REPLACE)],
    lambda noise: [fixed_size(0.1, noise, 20)],
    lambda noise: [fixed_size(0.1, noise, 20, REPLACE)],
    lambda noise: [laplace(noise, 10)],
    lambda noise: [two_stage(0.2, fixed_size(0.1, noise), 10)],
    lambda noise: [poisson(0.1, noise * (1 + step / 100)) for step in range(100)],
]


@pytest.mark.parametrize("events_at", EVERY_KIND)
def test_the_smallest_noise_within_the_target_is_found_in_few_steps(events_at: EventsAt) -> None:
    tried = []

    def watched(noise: float) -> Sequence[Event]:
        tried.append(noise)
        return events_at(noise)

    found = noise_multiplier(3.0, DELTA, watched)
    assert pld.epsilon(events_at(found), DELTA) <= 3.0
    assert pld.epsilon(events_at(found * (1 - 1e-4)), DELTA) > 3.0
    assert len(tried) <= 12


@settings(max_examples=15, deadline=None)
@given(st.floats(0.3, 12), st.floats(0.01, 1), st.integers(1, 60))
def test_calibration_inverts_the_accountant(target: float, rate: float, rounds: int) -> None:
    events_at = globally(rate, rounds)
    found = noise_multiplier(target, DELTA, events_at)
    assert pld.epsilon(events_at(found), DELTA) <= target
    if found > MIN_NOISE_MULTIPLIER * 1.001:
        assert pld.epsilon(events_at(found * (1 - 1e-4)), DELTA) > target


def test_where_sampling_alone_would_do_the_least_noise_is_given() -> None:
    assert noise_multiplier(1, DELTA, globally(1e-8, 5)) == MIN_NOISE_MULTIPLIER


@pytest.mark.parametrize(
    ("placement", "secure_aggregation"),
    [
        (Placement.SERVER, "none"),
        (Placement.CLIENT_FULL, "none"),
        (Placement.CLIENT_FULL, "real"),
        (Placement.CLIENT_SHARE, "none"),
        (Placement.CLIENT_SHARE, "real"),
    ],
)
@pytest.mark.parametrize("clients", [3, 7, 10])
def test_the_least_noise_can_be_accounted_whoever_draws_it(
    placement: Placement, secure_aggregation: Literal["none", "real"], clients: int
) -> None:
    mechanism = Mechanism(
        sampling=Poisson(provider_rate=1e-6),
        noise=Noise(multiplier=1, placement=placement, secure_aggregation=secure_aggregation),
        clients=clients,
    )
    rule = SamplingRule.TWO_STAGE
    found = noise_multiplier_for(mechanism, epsilon=100, delta=DELTA, rounds=1, rule=rule)
    calibrated = mechanism.with_noise_multiplier(found)
    assert calibrated.effective_noise_multiplier() == pytest.approx(MIN_NOISE_MULTIPLIER, rel=1e-12)
    assert pld.epsilon(calibrated.events(rule), DELTA) <= 100


def test_a_delta_for_which_no_noise_has_a_finite_epsilon_is_blamed_itself() -> None:
    with pytest.raises(ValueError, match="no finite ε holds at δ = 1e-14, whatever the noise"):
        noise_multiplier(1, 1e-14, lambda noise: [gaussian(noise)])


def test_no_noise_may_be_enough() -> None:
    with pytest.raises(ValueError, match="no noise multiplier up to 10000"):
        noise_multiplier(1e-4, DELTA, lambda noise: [gaussian(noise, 1_000_000)])


@pytest.mark.parametrize("target", [0, -1, math.nan, math.inf])
def test_an_impossible_target_is_rejected(target: float) -> None:
    with pytest.raises(ValueError, match="ε must be positive"):
        noise_multiplier(target, DELTA, globally(0.2, 10))
