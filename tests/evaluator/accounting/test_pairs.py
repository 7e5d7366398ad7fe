"""Tails of privacy losses, against direct integration; and worst cases, against pairs that real datasets can have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from evaluator.accounting.pairs import (
    Floats,
    GaussianPair,
    LaplacePair,
    Symmetrized,
    dominating_pairs,
)
from evaluator.mechanisms.events import SingleStage
from tests.evaluator.accounting.compositions import REPLACE, fixed_size, gaussian, laplace, poisson

POINTS = np.linspace(-40, 40, 400_001)
STEP = POINTS[1] - POINTS[0]


def mixture(weights: dict[float, float], sigma: float) -> Floats:
    """Density at POINTS; `weights` of each mean."""
    return np.asarray(sum(weight * norm.pdf(POINTS, mean, sigma) for mean, weight in weights.items()))


def divergence(p: Floats, q: Floats, alpha: float) -> float:
    """H_α(P‖Q), numerically."""
    return float(np.maximum(p - alpha * q, 0).sum() * STEP)


def bound(event: SingleStage, alpha: float) -> float:
    """H_α that the event's dominating pairs allow, whichever of the neighbors comes first."""
    losses = np.array([np.log(alpha)])
    return max(
        float(p[0] - alpha * q[0]) for p, q in (pair.tails(losses) for pair in dominating_pairs(event))
    )


@pytest.mark.parametrize(
    ("up", "down"), [(1.0, 0.0), (1.0, 1.0), (0.3, 0.0), (0.0, 0.3), (0.3, 0.3), (0.01, 0.0)]
)
@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_tails_of_gaussian_pairs_are_those_of_the_densities(sigma: float, up: float, down: float) -> None:
    p = mixture({0: 1 - up, 1: up}, sigma)
    q = mixture({0: 1 - down, -1: down}, sigma)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(p / q)
    for at in (-2.0, -0.2, -1e-3, 1e-3, 0.1, 1.0, 3.0):
        tails = GaussianPair(sigma, up, down).tails(np.array([at]))
        expected = (p[loss > at].sum() * STEP, q[loss > at].sum() * STEP)
        assert [float(tail[0]) for tail in tails] == pytest.approx(expected, abs=2e-4)


def test_tails_of_the_laplace_pair_have_an_atom_at_both_ends() -> None:
    pair = LaplacePair(0.5)
    p, q = pair.tails(np.array([-2.1, -2.0, -1.9, 0.0, 1.999999, 2.0, 2.1]))
    assert p[[0, 4, 5, 6]] == pytest.approx([1, 0.5, 0, 0], abs=1e-5)
    assert 1 - p[1] == pytest.approx(np.exp(-2) / 2)  # P's atom at the lowest loss
    assert 1 - q[1] == pytest.approx(0.5)
    assert p[3] - q[3] == pytest.approx(
        1 - np.exp(-1)
    )  # total variation of Laplace noise shifted by two scales


def test_the_symmetrized_pair_keeps_the_curve_above_one_and_mirrors_it_below() -> None:
    removal = GaussianPair(1.0, 0.4, 0.0)
    losses = np.array([0.0, 0.3, 1.0])
    p, q = Symmetrized(removal).tails(losses)
    expected_p, expected_q = removal.tails(losses)
    assert p == pytest.approx(expected_p)
    assert q == pytest.approx(expected_q)
    p_below, q_below = Symmetrized(removal).tails(-losses[1:])
    alpha = np.exp(losses[1:])
    above = p[1:] - alpha * q[1:]
    assert p_below - q_below / alpha == pytest.approx(1 - 1 / alpha + above / alpha)


offsets = st.floats(-1, 1)
alphas = st.floats(1, 30)
few = settings(max_examples=30, deadline=None)


@few
@given(st.floats(0.05, 1), offsets, offsets, alphas)
def test_no_replacement_under_poisson_sampling_is_worse_than_its_pair(
    rate: float, x: float, other: float, alpha: float
) -> None:
    p = mixture({0.0: 1 - rate}, 0.7) + mixture({x: rate}, 0.7)
    q = mixture({0.0: 1 - rate}, 0.7) + mixture({other: rate}, 0.7)
    assert divergence(p, q, alpha) <= bound(poisson(rate, 0.7, adjacency=REPLACE), alpha) + 1e-4


@few
@given(st.floats(0.05, 1), offsets, offsets, alphas)
def test_no_newcomer_in_a_fixed_size_sample_is_worse_than_its_pair(
    rate: float, x: float, displaced: float, alpha: float
) -> None:
    without = mixture({displaced: 1.0}, 1.3)
    with_x = (1 - rate) * without + mixture({x: rate}, 1.3)
    event = fixed_size(rate, 1.3)
    assert divergence(with_x, without, alpha) <= bound(event, alpha) + 1e-4
    assert divergence(without, with_x, alpha) <= bound(event, alpha) + 1e-4


@few
@given(st.floats(0.05, 1), offsets, offsets, offsets, alphas)
def test_no_replacement_in_a_fixed_size_sample_is_worse_than_its_pair(
    rate: float, x: float, other: float, displaced: float, alpha: float
) -> None:
    rest = mixture({displaced: 1 - rate}, 1.3)
    p, q = rest + mixture({x: rate}, 1.3), rest + mixture({other: rate}, 1.3)
    assert divergence(p, q, alpha) <= bound(fixed_size(rate, 1.3, adjacency=REPLACE), alpha) + 1e-4


def test_the_worst_replacement_in_a_fixed_size_sample_is_attained() -> None:
    rest = mixture({-1.0: 0.8}, 1.3)
    p, q = rest + mixture({1.0: 0.2}, 1.3), rest + mixture({-1.0: 0.2}, 1.3)
    assert divergence(p, q, 2.0) == pytest.approx(
        bound(fixed_size(0.2, 1.3, adjacency=REPLACE), 2.0), abs=1e-6
    )


@pytest.mark.parametrize(
    "event", [gaussian(1), laplace(1), poisson(0.2, 1, adjacency=REPLACE)], ids=lambda e: e.type
)
def test_symmetric_mechanisms_have_one_pair(event: SingleStage) -> None:
    assert len(dominating_pairs(event)) == 1
