"""What a composition allows an attack, against closed forms, another library, and an attack that is simulated."""

import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from scipy.special import ndtr, ndtri

from evaluator.accounting.membership import (
    FALSE_POSITIVE_RATES,
    gaussian_deltas,
    membership_bounds,
    privacy_profiles,
    true_positive_rates,
)
from evaluator.mechanisms.events import Event
from tests.evaluator.accounting.compositions import DELTA, fixed_size, gaussian, laplace, poisson, two_stage

# To which the figures are promised.
ACCURACY = 1e-4


@pytest.mark.parametrize(("sigma", "rounds"), [(0.7, 1), (2.0, 1), (5.0, 30), (40.0, 16)])
def test_a_gaussian_composition_has_its_closed_form(sigma: float, rounds: int) -> None:
    mu = math.sqrt(rounds) / sigma
    bounds = membership_bounds(privacy_profiles([gaussian(sigma, rounds)]), DELTA)
    assert 0 <= bounds.balanced_accuracy - ndtr(mu / 2) < ACCURACY
    for rate in bounds.true_positive_rates:
        exact = ndtr(ndtri(rate.false_positive_rate) + mu)
        assert 0 <= rate.at_most - exact < ACCURACY
    assert bounds.gaussian_mu is not None
    assert 0 <= bounds.gaussian_mu - mu < 3e-4


@pytest.mark.parametrize(
    ("rate", "sigma", "rounds"),
    [
        (0.2, 0.77, 10),
        (1.0, 3.0, 4),
        pytest.param(0.3, 1.04, 16, marks=pytest.mark.slow),
        pytest.param(0.01, 0.6, 200, marks=pytest.mark.slow),
    ],
)
def test_it_agrees_with_another_library(rate: float, sigma: float, rounds: int) -> None:
    found = from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-4
    ).self_compose(rounds)
    epsilons = np.linspace(0, 12, 601)
    deltas = np.array(found.get_delta_for_epsilon(epsilons))
    ours = membership_bounds(privacy_profiles([poisson(rate, sigma, rounds)]), DELTA)
    assert abs(ours.balanced_accuracy - (1 + deltas[0]) / 2) < ACCURACY
    for bound in ours.true_positive_rates:
        # The library's curve is of the worse direction, so it may be above what both together allow.
        theirs = min(1.0, float((np.exp(epsilons) * bound.false_positive_rate + deltas).min()))
        assert bound.at_most < theirs + ACCURACY


@pytest.mark.parametrize(
    "events",
    [
        [poisson(0.3, 1.04, 16)],
        [two_stage(0.2, poisson(0.1125, 1.21), 30)],
        [fixed_size(0.025, 1.145, 5)],
        [laplace(3.0, 4)],
        [gaussian(1.0), poisson(0.5, 2.0, 3)],
    ],
)
def test_the_bounds_are_in_order(events: list[Event]) -> None:
    bounds = membership_bounds(privacy_profiles(events), DELTA)
    assert 0.5 < bounds.balanced_accuracy < 1
    rates = [bound.at_most for bound in bounds.true_positive_rates]
    assert rates == sorted(rates)
    # No attack is worse than guessing, and none is better at one rate than its balanced accuracy allows.
    for false, true in zip(FALSE_POSITIVE_RATES, rates, strict=True):
        assert false <= true <= false + 2 * bounds.balanced_accuracy - 1 + 1e-9
    # The Gaussian curve lies above that of the run, wherever δ counts.
    assert bounds.gaussian_mu is not None
    for profile in privacy_profiles(events):
        counted = profile.deltas >= DELTA
        above = gaussian_deltas(bounds.gaussian_mu, profile.epsilons[counted])
        assert (above + 1e-8 >= profile.deltas[counted]).all()


def test_the_best_attack_on_a_sampled_round_stays_below_the_bound() -> None:
    rate, sigma, trials = 0.3, 0.8, 400_000
    random = np.random.default_rng(7)
    without = random.normal(0, sigma, trials)
    with_unit = random.normal(0, sigma, trials) + (random.random(trials) < rate)
    # The likelihood ratio rises with the output, so the best attack is a threshold on it.
    thresholds = np.quantile(without, [1 - rate for rate in FALSE_POSITIVE_RATES])
    profiles = privacy_profiles([poisson(rate, sigma)])
    for threshold, bound in zip(thresholds, true_positive_rates(profiles, FALSE_POSITIVE_RATES), strict=True):
        measured = float((with_unit > threshold).mean())
        # Five standard deviations of both estimates.
        assert measured < bound + 0.006
        assert measured > bound - 0.006


def test_nothing_released_is_nothing_learned() -> None:
    bounds = membership_bounds(privacy_profiles([]), DELTA)
    assert bounds.balanced_accuracy == 0.5
    rates = [bound.at_most for bound in bounds.true_positive_rates]
    assert rates == pytest.approx(FALSE_POSITIVE_RATES, abs=1e-12)
    assert bounds.gaussian_mu == 0


def test_where_no_finite_epsilon_holds_everything_can_be_learned() -> None:
    bounds = membership_bounds(privacy_profiles([gaussian(0.1, 1_000_000)]), DELTA)
    assert bounds.balanced_accuracy == 1
    assert {bound.at_most for bound in bounds.true_positive_rates} == {1.0}
    assert bounds.gaussian_mu is None
