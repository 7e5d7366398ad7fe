"""Statistical tests of the opened blocks: whether noised sums contain the noise that the record declares.

In round t the opened coordinates are uₜ = aₜ + zₜ. aₜ is the signal, the sum of the sampled providers' clipped updates,
of norm at most sₜ·S; zₜ is N(0, std²) in each coordinate, fresh, so independent of aₜ and of all earlier rounds. No
more is assumed but in `shape`: the signal may follow earlier noise and lie wholly in the opened blocks. The tests of
one kind together flag an honest run with probability at most `FALSE_ALARM`, shared among them (Bonferroni).

A strong signal, sₜ·C against std·√n, hides much: then the bounds are wide. No test can detect whether updates were
clipped, or whether somebody knows the noise. Limits that depend on sₜ, which is private, are not reported.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import chi2, norm

from evaluator.records.certificate import BLOCK

FALSE_ALARM = 2e-5
# The signal's largest share of the noise's energy in the whole vector; above it, the shape can't be seen.
MAX_SIGNAL_SHARE = 0.01

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class OpenedRound:
    """The opened part of a round.

    Attributes:
        number: The number of the round, from 1.
        values: The opened blocks end to end (n,), in units of the declared noise's standard deviation.
        signal: The signal's largest norm, in the same unit.
        numel: d, the length of the vector that the blocks are of.
    """

    number: int
    values: Doubles
    signal: float
    numel: int

    @property
    def shows_shape(self) -> bool:
        return self.signal**2 <= MAX_SIGNAL_SHARE * self.numel


@dataclass(frozen=True)
class Finding:
    """A deviation that an honest run almost never shows."""

    round: int
    expected: str
    found: str


def size(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds whose norm is too small or too large.

    The lower limit is exact by χ², since no signal makes the norm smaller in distribution. The upper one is
    ‖u‖ ≤ √(n + signal²) + √(2 ln 1/p), as a norm is a Lipschitz function of the noise.
    """
    p = FALSE_ALARM / (2 * len(rounds))
    findings = []
    for opened in rounds:
        root_n = math.sqrt(len(opened.values))
        ratio = float(np.linalg.norm(opened.values)) / root_n
        least = math.sqrt(chi2.ppf(p, len(opened.values))) / root_n
        most = (math.hypot(root_n, opened.signal) + math.sqrt(-2 * math.log(p))) / root_n
        if not least <= ratio <= most:
            expected = (
                f"a norm of {least:.4f} of the noise's or more, as far as the sampled providers can raise it"
            )
            findings.append(Finding(opened.number, expected, f"{ratio:.4f}"))
    return findings


def block_size(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds with a block whose norm is too small, as where some coordinates have no noise."""
    blocks = [(opened.number, block) for opened in rounds for block in _blocks(opened.values)]
    p = FALSE_ALARM / len(blocks)
    limits = {n: math.sqrt(chi2.ppf(p, n) / n) for n in {len(block) for _, block in blocks}}
    findings = {}
    for number, block in blocks:
        ratio, least = float(np.sqrt(np.mean(block**2))), limits[len(block)]
        if ratio < least:
            findings[number] = Finding(
                number, f"a norm of at least {least:.4f} of the noise's in every block", f"{ratio:.4f}"
            )
    return list(findings.values())


def shape(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds whose values are not normally distributed.

    They are tested by the Kolmogorov distance with the Dvoretzky–Kiefer–Wolfowitz–Massart inequality. Rounds whose
    shape can't be seen pass. A signal moves the mean distribution by at most φ(0) times the mean shift, which is at
    most signal/√d if the blocks, drawn at random, hold their share of it.
    """
    p = FALSE_ALARM / len(rounds)
    findings = []
    for opened in rounds:
        n = len(opened.values)
        shift = norm.pdf(0) * opened.signal / math.sqrt(opened.numel)
        distance = _distance_to_normal(opened.values)
        if opened.shows_shape and distance > math.sqrt(math.log(2 / p) / (2 * n)) + shift:
            findings.append(
                Finding(opened.number, "normally distributed values", f"a distance of {distance:.4f}")
            )
    return findings


def repetition(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds that correlate with an earlier one, or with the sum of all earlier ones.

    Such a correlation shows noise that is used again, or subtracted later.

    For whatever u is known before round t, ⟨u/‖u‖, zₜ⟩ is standard normal and |⟨u/‖u‖, aₜ⟩| at most the signal.
    """
    count = len(rounds)
    if count < 2:
        return []
    values = np.stack([opened.values for opened in rounds])
    # Two-sided, over more than all pairs and sums.
    limit = norm.isf(FALSE_ALARM / (count * (count + 1)))
    findings = []
    for index in range(1, count):
        earlier = np.vstack([values[:index], values[:index].sum(axis=0)])
        lengths = np.linalg.norm(earlier, axis=1)
        along = np.abs(earlier @ values[index]) / np.where(lengths > 0, lengths, 1)
        if along.max() > limit + rounds[index].signal:
            correlation = along.max() / np.linalg.norm(values[index])
            findings.append(
                Finding(
                    rounds[index].number,
                    "noise that is independent of earlier rounds'",
                    f"a correlation of {correlation:.4f}",
                )
            )
    return findings


def _blocks(values: Doubles) -> list[Doubles]:
    return [values[begin : begin + BLOCK] for begin in range(0, len(values), BLOCK)]


def _distance_to_normal(values: Doubles) -> float:
    """Return the Kolmogorov distance of the values' distribution from N(0, 1)."""
    n = len(values)
    expected = ndtr(np.sort(values))
    above, below = np.arange(1, n + 1) / n - expected, expected - np.arange(n) / n
    return float(max(above.max(), below.max()))
