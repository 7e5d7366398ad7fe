"""What a composition's privacy means: how well anybody can find out whether a privacy unit took part.

An attack sees everything that was released and says "took part" or not. Every (ε, δ) that holds bounds how often it is
right, and all of them together bound it as tightly as what was released allows: Kairouz, Oh and Viswanath, "The
Composition Theorem for Differential Privacy" (2015). For a false positive rate α the true positive rate is at most
e^ε·α + δ(ε), by the direction of a removed unit, and at most 1 − e^(−ε)·(1 − α − δ(ε)), by that of an added one. The
balanced accuracy is at most (1 + δ(0))/2.

Guarantee: upper bounds, as δ(ε) by `pld` is one, for an attacker who knows all other data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from evaluator.accounting import pld
from evaluator.accounting.bounds import MembershipBounds, TruePositiveRate
from evaluator.accounting.pairs import Floats
from evaluator.mechanisms.events import Event, check_delta

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
# Rounding in sums of a million masses.
ROUNDING = 1e-10
# The points at which curves of δ are compared, and the digits of μ.
POINTS = 4000
MU_STEP = 1e-4


@dataclass(frozen=True)
class PrivacyProfile:
    """δ (n,) at rising ε (n,) from 0 on, in one direction."""

    epsilons: Floats
    deltas: Floats


def privacy_profiles(events: Iterable[Event]) -> list[PrivacyProfile]:
    """Return the profile for a removed privacy unit and that for an added one; one where they are the same.

    Raises:
        ValueError: The events don't compose.
    """
    profiles = [PrivacyProfile(*losses.profile()) for losses in pld.composed(events)]
    return profiles or [PrivacyProfile(np.zeros(1), np.zeros(1))]


def membership_bounds(profiles: Sequence[PrivacyProfile], delta: float) -> MembershipBounds:
    """Return what a composition with these profiles allows an attack at most.

    Args:
        delta: The smallest δ for which the Gaussian bound has to hold.

    Raises:
        ValueError: δ is not in (0, 1).
    """
    check_delta(delta)
    rates = true_positive_rates(profiles, FALSE_POSITIVE_RATES)
    return MembershipBounds(
        balanced_accuracy=(1 + min(float(profile.deltas[0]) for profile in profiles)) / 2,
        true_positive_rates=[
            TruePositiveRate(false_positive_rate=rate, at_most=found)
            for rate, found in zip(FALSE_POSITIVE_RATES, rates, strict=True)
        ],
        gaussian_mu=_gaussian_mu(profiles, delta),
    )


def true_positive_rates(
    profiles: Sequence[PrivacyProfile], false_positive_rates: Sequence[float]
) -> list[float]:
    """Return the largest true positive rate that an attack can have at each false positive rate."""
    removed, added = profiles[0], profiles[-1]
    raising, lowering = np.exp(removed.epsilons), np.exp(-added.epsilons)
    bounds = []
    for rate in false_positive_rates:
        first = float((raising * rate + removed.deltas).min())
        second = float((1 - lowering * (1 - rate - added.deltas)).min())
        bounds.append(min(1.0, first, second))
    return bounds


def _gaussian_mu(profiles: Sequence[PrivacyProfile], delta: float) -> float | None:
    """Return the smallest μ, rounded up, of which Gaussian DP is no stronger for δ from `delta` on; None for none."""
    thinned = [_thinned(profile, delta) for profile in profiles]
    if any(profile.deltas[-1] > delta for profile in profiles):
        return None
    low, high = 0, 1

    def is_weaker(steps: int) -> bool:
        return all(
            (gaussian_deltas(steps * MU_STEP, profile.epsilons) + ROUNDING >= profile.deltas).all()
            for profile in thinned
        )

    if is_weaker(0):
        return 0.0
    while not is_weaker(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_weaker(middle) else (middle, high)
    return round(high * MU_STEP, 4)


def _thinned(profile: PrivacyProfile, delta: float) -> PrivacyProfile:
    """Return a part of the points, evenly spaced, down to the smallest δ that counts."""
    counted = max(1, int((profile.deltas >= delta).sum()))
    kept = np.unique(np.linspace(0, counted - 1, POINTS).astype(int))
    return PrivacyProfile(profile.epsilons[kept], profile.deltas[kept])


def gaussian_deltas(mu: float, epsilons: Floats) -> Floats:
    """Return δ (n,) at `epsilons` (n,) of μ-Gaussian DP: Dong, Roth and Su, "Gaussian Differential Privacy" (2022)."""
    if mu == 0:
        return np.zeros(len(epsilons))
    upper, lower = mu / 2 - epsilons / mu, -mu / 2 - epsilons / mu
    return np.asarray(ndtr(upper) - np.exp(epsilons + log_ndtr(lower)))
