"""Statistical tests of the opened blocks: whether noised sums contain the noise that the record declares.

In round t the opened coordinates are uₜ = aₜ + zₜ. aₜ is the signal, the sum of the sampled providers' clipped updates,
of norm at most sₜ·S; zₜ is N(0, std²) in each coordinate, fresh, so independent of aₜ and of all earlier rounds. No
more is assumed: the signal may follow earlier noise and lie wholly in the opened blocks. The five kinds of tests
together flag an honest run with probability at most `FALSE_ALARM_OF_A_RUN`, shared among them and then among all tests
of a kind (Bonferroni). Every limit is exact (χ², normal) or a proven bound (Lipschitz, Chernoff), none asymptotic. The
exception is noise that a codec rounds after it was drawn: what rounding takes away is computed for noise alone only.

`size`, `block_size` and `repetition` measure lengths, and a strong signal, sₜ·C against std·√n, hides much from them.
`shape` and `taken_back` measure how the values spread (`characteristic_function`): a signal of any length leaves them
as sharp as they are, unless it is itself spread like noise. `noise_power` says what each would have detected. No test
can detect whether updates were clipped, or whether somebody knows the noise. Limits that depend on sₜ, which is
private, are not reported.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evaluator.records.certificate import BLOCK
from evaluator.records.characteristic_function import FREQUENCIES, STEP, Complexes, limit, powers

FALSE_ALARM_OF_A_RUN = 1e-5
# Of the tests of one kind: `size`, `block_size`, `shape`, `repetition`, `taken_back`.
FALSE_ALARM = FALSE_ALARM_OF_A_RUN / 5
# A shorter last block isn't tested by itself: norms as small as its limit would have to be are no longer rare among
# sums of float32, which lie on a grid.
SHORTEST_BLOCK = 128
# What rounding to a few bits leaves of the norm. A client's noise alone in NF4 keeps 0.9995 of it on average, and 0.987
# in the worst of a thousand blocks; a signal adds to it.
LEFT_BY_ROUNDING = 0.985

# How many rounds before a round `taken_back` adds to it one by one, which bounds its time.
MOST_EARLIER = 32

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class OpenedRound:
    """The opened part of a round.

    Attributes:
        number: The number of the round, from 1.
        values: The opened blocks end to end (n,), in units of the declared noise's standard deviation.
        signal: The signal's largest norm, in the same unit.
        rounded: Whether a codec rounded the values after the noise was drawn.
    """

    number: int
    values: Doubles
    signal: float
    rounded: bool = False


@dataclass(frozen=True)
class Finding:
    """A deviation that an honest run almost never shows; `round` is None where all rounds together show it."""

    round: int | None
    expected: str
    found: str


def size_p(rounds: int) -> float:
    """Return the probability with which an honest round may be below, and above, the limits of `size`."""
    return FALSE_ALARM / (2 * rounds)


def shape_p(rounds: int, coordinates: int) -> float:
    """Return the probability with which a set of `shape` may be beyond its limit at one frequency."""
    sets = _SETS_OF_A_ROUND + -(-coordinates // BLOCK)
    return FALSE_ALARM / (sets * (rounds + 1) * len(FREQUENCIES))


def taken_back_p(rounds: int) -> float:
    """Return the probability with which a pair or sum of `taken_back` may be beyond its limit at one frequency."""
    # There are rounds·(rounds − 1) pairs with either sign, and rounds − 1 sums.
    return FALSE_ALARM / (rounds**2 * len(FREQUENCIES))


def correlation_limit(rounds: int) -> float:
    """Return what noise along an earlier round, or the sum of all, reaches by chance at most, in `repetition`."""
    from scipy.stats import norm

    # Two-sided, over more than all pairs and sums.
    return float(norm.isf(FALSE_ALARM / (rounds * (rounds + 1))))


@cache
def least_norm(count: int, p: float, *, rounded: bool) -> float:
    """Return the share of the noise's norm √n that `count` noised values undercut with probability at most `p`.

    It is exact by χ² where nothing is rounded, since no signal makes the norm smaller in distribution.
    """
    from scipy.stats import chi2

    return (LEFT_BY_ROUNDING if rounded else 1.0) * math.sqrt(float(chi2.ppf(p, count)) / count)


def size(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds whose norm is too small or too large.

    The upper limit is ‖u‖ ≤ √(n + signal²) + √(2 ln 1/p), as a norm is a Lipschitz function of the noise; rounding may
    add what it may take away.
    """
    p = size_p(len(rounds))
    findings = []
    for opened in rounds:
        root_n = math.sqrt(len(opened.values))
        ratio = float(np.linalg.norm(opened.values)) / root_n
        least = least_norm(len(opened.values), p, rounded=opened.rounded)
        most = (math.hypot(root_n, opened.signal) + math.sqrt(-2 * math.log(p))) / root_n
        if opened.rounded:
            most /= LEFT_BY_ROUNDING
        if not least <= ratio <= most:
            expected = (
                f"a norm of {least:.4f} of the noise's or more, as far as the sampled providers can raise it"
            )
            findings.append(Finding(opened.number, expected, f"{ratio:.4f}"))
    return findings


def block_size(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds with a block whose norm is too small, as where some coordinates have no noise."""
    blocks = [
        (opened, block)
        for opened in rounds
        for block in _blocks(opened.values)
        if len(block) >= SHORTEST_BLOCK
    ]
    p = FALSE_ALARM / max(1, len(blocks))
    findings = {}
    for opened, block in blocks:
        ratio, least = float(np.sqrt(np.mean(block**2))), least_norm(len(block), p, rounded=opened.rounded)
        if ratio < least:
            findings[opened.number] = Finding(
                opened.number, f"a norm of at least {least:.4f} of the noise's in every block", f"{ratio:.4f}"
            )
    return list(findings.values())


def shape(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds whose values don't spread as independent normally distributed noise makes them.

    For all, even and odd coordinates, every block, and sums and differences of pairs, in each round and in all rounds
    together, |mean e^(iku)| is within its limit at all `FREQUENCIES`. Pairs show noise that is used twice within a
    round, with the same sign or the other, where it is arranged in one of the ways of `_pairs`.
    """
    sets = [(opened.number, coordinates) for opened in rounds for coordinates in _sets(opened.values)]
    together = _together([coordinates for _, coordinates in sets]) if len(rounds) > 1 else []
    p = shape_p(len(rounds), max(len(one.values) for one in rounds))
    return _worst_of_each_round([*sets, *((None, one) for one in together)], p)


def taken_back(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds that together with an earlier one, or with the sum of all earlier ones, have lost their noise.

    Whatever is known before round t turns e^(ikuₜ) and makes it no longer, as a signal does. So the limit of `shape`
    holds for e^(ik(uₜ ± uₛ)) with each of the `MOST_EARLIER` rounds s before, and for the sum of the first t rounds.
    """
    count = len(rounds)
    if count < 2:
        return []
    values = np.stack([opened.values for opened in rounds])
    n, p = values.shape[1], taken_back_p(count)
    found: dict[int, Finding] = {}
    all_turns = powers(np.exp(1j * STEP * values)), powers(np.exp(1j * STEP * values.cumsum(axis=0)))
    for frequency, turns, so_far in zip(FREQUENCIES, *all_turns, strict=True):
        most = limit(n, frequency, p)
        for later in range(1, count):
            earlier, own = turns[max(0, later - MOST_EARLIER) : later], turns[later]
            sums = np.concatenate([earlier @ own, earlier @ own.conj(), [so_far[later].sum()]])
            if (length := float(np.abs(sums).max()) / n) > most:
                found.setdefault(
                    rounds[later].number,
                    _too_long(rounds[later].number, most, frequency, "with earlier rounds", length),
                )
    return list(found.values())


def repetition(rounds: Sequence[OpenedRound]) -> list[Finding]:
    """Find rounds that correlate with an earlier one, or with the sum of all earlier ones.

    Such a correlation shows noise that is used again, or subtracted later.

    For whatever u is known before round t, ⟨u/‖u‖, zₜ⟩ is standard normal and |⟨u/‖u‖, aₜ⟩| at most the signal.
    """
    count = len(rounds)
    if count < 2:
        return []
    values = np.stack([opened.values for opened in rounds])
    products, so_far, most = values @ values.T, np.zeros(values.shape[1]), correlation_limit(count)
    lengths = np.sqrt(np.diag(products))
    findings = []
    for index in range(1, count):
        so_far += values[index - 1]
        along = np.append(products[index, :index], so_far @ values[index])
        norms = np.append(lengths[:index], np.linalg.norm(so_far))
        largest = float((np.abs(along) / np.where(norms > 0, norms, 1)).max())
        if largest > most + rounds[index].signal:
            findings.append(
                Finding(
                    rounds[index].number,
                    "noise independent of earlier rounds",
                    f"a correlation of {largest / lengths[index]:.4f}",
                )
            )
    return findings


def _blocks(values: Doubles) -> list[Doubles]:
    return [values[begin : begin + BLOCK] for begin in range(0, len(values), BLOCK)]


@dataclass(frozen=True)
class _Coordinates:
    """A set of coordinates, or of pairs of them, with the sums of e^(iku) over it for each frequency."""

    name: str
    count: int
    sums: Complexes


def _sets(values: Doubles) -> Iterator[_Coordinates]:
    """Yield the sets of a round's values (n,) that `shape` compares with the limits; none is empty."""
    starts = np.arange(0, len(values), BLOCK)
    sums: dict[str, list[complex]] = defaultdict(list)
    of_blocks = []
    for turns in powers(np.exp(1j * STEP * values)):
        sums["even coordinates"].append(turns[::2].sum())
        sums["odd coordinates"].append(turns[1::2].sum())
        of_blocks.append(np.add.reduceat(turns, starts))
        sums["all coordinates"].append(of_blocks[-1].sum())
    n = len(values)
    counts = {"all coordinates": n, "even coordinates": n - n // 2, "odd coordinates": n // 2}
    # Of standard deviation 1, as a single value is, is a pair's sum over √2.
    for turns in powers(np.exp(1j * STEP / math.sqrt(2) * values)):
        for name, one, other in _pairs(turns):
            # e^(ik(u+v)) and e^(ik(u−v)), added up.
            sums[f"sums of {name}"].append(complex(one @ other))
            sums[f"differences of {name}"].append(complex(np.vdot(other, one)))
            counts[f"sums of {name}"] = counts[f"differences of {name}"] = len(one)
    for name, count in counts.items():
        if count:
            yield _Coordinates(name, count, np.array(sums[name]))
    if n > BLOCK:
        for begin, of_block in zip(starts, np.stack(of_blocks, axis=1), strict=True):
            yield _Coordinates(_BLOCK_NAME, min(BLOCK, n - int(begin)), of_block)


_BLOCK_NAME = "a block"
# All, even and odd coordinates, and sums and differences of the four arrangements in pairs.
_SETS_OF_A_ROUND = 11


def _pairs(turns: Complexes) -> Iterator[tuple[str, Complexes, Complexes]]:
    """Yield the arrangements in pairs of a round's coordinates: each is in one pair of an arrangement, or in none."""
    half = len(turns) // 2
    yield "neighbors", turns[: 2 * half : 2], turns[1 : 2 * half : 2]
    yield "both halves", turns[:half], turns[half : 2 * half]
    yield "mirror images", turns[:half], turns[::-1][:half]
    blocks = turns[: len(turns) // (2 * BLOCK) * (2 * BLOCK)].reshape(-1, 2, BLOCK)
    yield "neighboring blocks", blocks[:, 0].ravel(), blocks[:, 1].ravel()


def _together(sets: Sequence[_Coordinates]) -> list[_Coordinates]:
    """Return the sets of the same name in all rounds as one set each, without the single blocks."""
    names = dict.fromkeys(one.name for one in sets if one.name != _BLOCK_NAME)
    return [
        _Coordinates(
            name,
            sum(one.count for one in sets if one.name == name),
            np.sum([one.sums for one in sets if one.name == name], axis=0),
        )
        for name in names
    ]


def _worst_of_each_round(tested: Iterable[tuple[int | None, _Coordinates]], p: float) -> list[Finding]:
    """Return a finding for each round with a length beyond its limit: the one that is farthest beyond."""
    worst: dict[int | None, tuple[float, Finding]] = {}
    for number, one in tested:
        for frequency, length in zip(FREQUENCIES, np.abs(one.sums) / one.count, strict=True):
            most = limit(one.count, frequency, p)
            if length > most and (number not in worst or length / most > worst[number][0]):
                worst[number] = length / most, _too_long(number, most, frequency, f"over {one.name}", length)
    return [finding for _, finding in worst.values()]


def _too_long(round_number: int | None, most: float, frequency: float, where: str, length: float) -> Finding:
    expected = f"a characteristic function of at most {most:.4f} at frequency {frequency:g}, {where}"
    return Finding(round_number, expected, f"{length:.4f}")
