"""How far all rounds together may have moved the weights, in every coordinate.

By a linear server rule the change Δ = w_T − w₀ is Σ cₜuₜ with uₜ = aₜ + zₜ: aₜ, the sampled providers' clipped
updates, is at most nₜ·Sₜ long, and zₜ is fresh Gaussian noise of standard deviation σₜSₜ. So a set B of m coordinates
that is fixed beforehand changes by at most

    ‖Δ_B‖ ≤ V^½·(√m + √(2 ln 1/p)) + Σ cₜnₜSₜ + rounding        with probability 1 − p,

where V = Σ(cₜσₜSₜ)² is the variance of the whole noise. A union bound over all sets of k blocks, and of k coordinates,
for every k, makes it hold for the longest ones. Tensors that take turns are looked at apart: cₜ is 0 for those that a
round doesn't move. docs/proofs/whole-change.md proves it, also for clip norms and numbers of rounds that depend on
earlier rounds; so `upper_ratio` above 1 shows a lie.

Noise has no preferred directions, as training has: a matrix of r·c standard normal values has no singular value above
√r + √c + √(2 ln 1/p), with the same probability. What the singular values of Δ exceed that by is signal, however long Δ
is as a whole; so `directed_signal` also sees noise that was rearranged until it adds up to a model.

That Δ also contains noise is likely and not certain, as later updates may take earlier noise back. `lower_findings`
compares with `NOISE_LEFT` of it, and only flags.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.weight_changes import SLICE
from evaluator.checkpoints.weight_vector import WeightVector
from evaluator.records.certificate import BLOCK
from evaluator.records.characteristic_function import FREQUENCIES, STEP, limit, powers
from evaluator.records.noise_tests import SHORTEST_BLOCK, Finding, least_norm
from evaluator.records.replay import ROUNDING
from evaluator.records.server_steps import MomentumStep, ServerStep, SumStep

# An honest run is rejected with a probability below this.
FALSE_ALARM = 1e-9
# The steps of the grid of V, and the sum of 1/(1 + |k|)² over all of them.
_STEP, _STEPS = 1.02, math.pi**2 / 3 - 1
# From which multiples of the noise's standard deviation on single coordinates are counted.
_TAILS = np.array([2, 2.5, 3, 3.5, 4, 5, 6, 8, 12, 16, 32, 64, 128, 256, 1024, 4096, 2.0**20])
# The part of the noise that the change should have kept, and the probability with which one of each kind of lower
# limits is undercut where it has.
NOISE_LEFT, LOWER_P = 0.9, 1e-6
# By so many standard deviations does the length of the change exceed its mean with the probability `LOWER_P`.
SPREAD = 4.75
# Matrices are split into pieces of so many values at most.
PIECE = 2**22
# So many of the largest singular values of a piece are found, by so many multiplications there and back.
DIRECTIONS, ITERATIONS = 16, 3
# The characteristic function of so many blocks is looked at.
SHAPED_BLOCKS = 2048

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """What the rounds may have done to the weights.

    Attributes:
        std: V^½, the standard deviation of the whole noise in each coordinate.
        planned_std: What it is by the plan, which is fixed beforehand.
        signal, expected_signal: Σ cₜnₜSₜ, by the true and by the expected numbers of providers.
        planned_rounds, rounds: How many rounds there were to be, and were.
        parts: How many parts of the weights have such bounds, and share the probability of a false alarm.
    """

    std: float
    planned_std: float
    signal: float
    expected_signal: float
    planned_rounds: int
    rounds: int
    parts: int = 1

    @property
    def longest_signal(self) -> float:
        """By whichever number of providers is larger, as more than expected may be sampled by chance."""
        return max(self.signal, self.expected_signal)

    def level(self, p: float) -> tuple[float, float]:
        """Return the standard deviation on the grid that isn't below `std`, and ln 1/p for the sets that it bounds."""
        steps = math.ceil(2 * math.log(self.std / self.planned_std) / math.log(_STEP) - 1e-6)
        tries = 2 * _STEPS * (1 + abs(steps)) ** 2 * max(1, self.planned_rounds) * self.parts
        return self.planned_std * _STEP ** (steps / 2), math.log(tries / p)


@dataclass(frozen=True)
class Change:
    """The change in the weights, as far as the limits ask for it.

    Attributes:
        numel: d.
        blocks: The squared norm of every block of it.
        before: The squared norm of the same block of w₀.
        tails: For each of `_TAILS`, how many coordinates are beyond it, and their squared norm.
    """

    numel: int
    blocks: Doubles
    before: Doubles
    tails: Sequence[tuple[int, float]]

    @property
    def squares(self) -> float:
        """‖Δ‖²."""
        return float(self.blocks.sum())


def round_weights(rule: ServerStep, normalizer: float, moves: Doubles) -> Doubles | None:
    """Return cₜ of every round (rounds,); None where the change isn't a linear function of the sums.

    Args:
        moves: 1 for each round that moves the coordinates in question, and 0 for each other one (rounds,).
    """
    match rule:
        case SumStep():
            return np.asarray(rule.learning_rate / normalizer * moves)
        case MomentumStep():
            decay = rule.momentum ** np.arange(len(moves))
            # Of the velocity that a round leaves, each later round that moves the weights adds what is left.
            kept = [np.cumsum(decay[: len(moves) - t] * moves[t:])[-1] for t in range(len(moves))]
            return np.asarray(rule.learning_rate / normalizer * np.array(kept))
        case _:
            return None


def measure(first: WeightVector, last: WeightVector, std: float) -> Change:
    """Measure the change from `first` to `last`, both (d,), in slices; `std`, if there is one, is the unit of tails."""
    std = std or 1.0
    blocks, before = [], []
    counts, squares = np.zeros(len(_TAILS), np.int64), np.zeros(len(_TAILS))
    for old, change in _slices(first, last):
        square = change**2
        starts = np.arange(0, len(change), BLOCK)
        blocks.append(np.add.reduceat(square, starts))
        before.append(np.add.reduceat(old**2, starts))
        tail = square[square > (_TAILS[0] * std) ** 2]
        beyond = np.searchsorted(_TAILS, np.sqrt(tail) / std) - 1
        counts += np.bincount(beyond, minlength=len(_TAILS))[: len(_TAILS)]
        squares += np.bincount(beyond, tail, minlength=len(_TAILS))[: len(_TAILS)]
    # Each is of all coordinates from there on.
    tails = list(
        zip(counts[::-1].cumsum()[::-1].tolist(), squares[::-1].cumsum()[::-1].tolist(), strict=True)
    )
    return Change(first.numel, np.concatenate(blocks), np.concatenate(before), tails)


def upper_ratio(change: Change, bounds: Bounds) -> float:
    """Return how long the longest sets of blocks and coordinates are, over their limits; above 1 in no honest run."""
    if not bounds.std:
        # No round has moved them, to the bit.
        return math.inf if change.squares else 0.0
    std, tries = bounds.level(FALSE_ALARM)
    order = np.argsort(change.blocks)[::-1]
    lengths = np.sqrt(change.blocks[order].cumsum())
    sizes = np.minimum(BLOCK * np.arange(1.0, len(order) + 1), change.numel)
    noise = std * _noise_length(sizes, np.arange(1.0, len(order) + 1), len(order), tries)
    rounding = _rounding(np.sqrt(change.before[order].cumsum()), noise + bounds.signal, bounds.rounds)
    ratios = [float((lengths / (noise + bounds.signal + rounding)).max())]
    if any(count for count, _ in change.tails):
        counts, squares = (np.array(values, np.float64) for values in zip(*change.tails, strict=True))
        counts, squares = counts[counts > 0], squares[counts > 0]
        noise = std * _noise_length(counts, counts, change.numel, tries)
        rounding = _rounding(math.sqrt(change.before.sum()), noise + bounds.signal, bounds.rounds)
        ratios.append(float((np.sqrt(squares) / (noise + bounds.signal + rounding)).max()))
    return max(ratios)


def longest_hidden(numel: int, bounds: Bounds) -> tuple[float, float]:
    """Return how long a change without noise may be and pass, in one block and in all, over the longest honest signal.

    That signal is of the expected number of providers, all of whose updates point the same way.
    """
    std, tries = bounds.level(FALSE_ALARM)
    count = -(-numel // BLOCK)
    one = std * float(_noise_length(np.array([min(BLOCK, numel)]), np.ones(1), count, tries)[0])
    everywhere = std * float(_noise_length(np.array([numel]), np.array([count]), count, tries)[0])
    signal = bounds.expected_signal
    return (one + signal) / signal, (everywhere + signal) / signal


def lower_findings(
    change: Change, first: WeightVector, last: WeightVector, std: float, *, rounded: bool
) -> Iterator[Finding]:
    """Yield where the change lacks noise of `NOISE_LEFT` of the standard deviation `std` in each coordinate.

    Whole change and blocks are measured by their length, and `SHAPED_BLOCKS` of the blocks by how their values spread,
    unless a codec `rounded` them.
    """
    if not std:
        return
    kept = NOISE_LEFT * std
    sizes = np.full(len(change.blocks), BLOCK)
    sizes[-1] = change.numel - BLOCK * (len(sizes) - 1)
    tested = sizes >= SHORTEST_BLOCK
    found = [(math.sqrt(change.squares / change.numel), least_norm(change.numel, LOWER_P, rounded=False), "")]
    if tested.any():
        ratios = np.sqrt(change.blocks[tested] / sizes[tested])
        limits = {
            int(size): least_norm(int(size), LOWER_P / len(sizes), rounded=False) for size in sizes[tested]
        }
        least = np.array([limits[int(size)] for size in sizes[tested]])
        worst = int(np.argmin(ratios / least))
        found.append(
            (float(ratios[worst]), float(least[worst]), f"block {int(np.flatnonzero(tested)[worst])}")
        )
    for length, least_length, where in found:
        if length < least_length * kept:
            expected = f"a norm of at least {least_length * NOISE_LEFT:.3f} of that of all rounds' noise"
            yield Finding(None, f"{expected}{where and f', in {where}'}", f"{length / std:.3f}")
            return
    if not rounded:
        yield from _shape_findings(change, first, last, kept, np.flatnonzero(tested))


def directed_signal(
    first: WeightVector, last: WeightVector, shapes: Iterable[Sequence[int]], change: Change, bounds: Bounds
) -> float:
    """Return how long the signal in the change is at least, by its largest singular values.

    With ‖Z‖ the largest singular value of the noise Z, Σᵢ max(0, sᵢ(Z + A) − ‖Z‖)² is at most the squared length of the
    signal A (Mirsky 1960), in every piece of a tensor, and so over all of them.

    Args:
        shapes: Those of the tensors, in the order of the vectors.
    """
    if not bounds.std:
        return 0.0
    std, tries = bounds.level(FALSE_ALARM)
    # Directions that nobody could choose the weights by.
    random = np.random.default_rng(list(hashlib.sha256(change.blocks.tobytes()).digest()))
    pieces = list(_pieces(shapes))
    beyond = math.sqrt(2 * (tries + math.log(max(1, len(pieces)))))
    square = 0.0
    for begin, rows, columns in pieces:
        end = begin + rows * columns
        piece = last.read(begin, end).astype(np.float64) - first.read(begin, end)
        # So that no square is beyond float32.
        largest = float(np.abs(piece).max()) or 1.0
        scaled = (piece / largest).astype(np.float32).reshape(rows, columns)
        singular = _largest_singular(scaled, random) * (largest / std)
        edge = math.sqrt(rows) + math.sqrt(columns) if min(rows, columns) > 1 else math.sqrt(rows * columns)
        square += float((np.maximum(singular - edge - beyond, 0) ** 2).sum())
    return std * math.sqrt(square)


def _largest_singular(matrix: NDArray[np.float32], random: np.random.Generator) -> Doubles:
    """Return the `DIRECTIONS` largest singular values, or a little less (block power iteration, Ritz values)."""
    columns = matrix.shape[1]
    found = random.standard_normal((columns, min(DIRECTIONS, *matrix.shape)), dtype=np.float32)
    for _ in range(ITERATIONS):
        found = np.linalg.qr(matrix.T @ (matrix @ found))[0]
    return np.linalg.svd((matrix @ found).astype(np.float64), compute_uv=False)


def _pieces(shapes: Iterable[Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    """Yield where each piece of a tensor begins, and its rows and columns; a tensor of one dimension is a column."""
    begin = 0
    for shape in shapes:
        rows, columns = (shape[0] if shape else 1), math.prod(shape[1:])
        step = max(1, PIECE // max(1, columns))
        for row in range(0, rows, step):
            if size := min(step, rows - row) * columns:
                yield begin, min(step, rows - row), columns
                begin += size


def signal_share(parts: Sequence[tuple[Change, float, float]], longest: float) -> tuple[float, float, float]:
    """Return which part of the `longest` signal the change shows, and between which bounds.

    ‖Δ‖² is about V·d + ‖Σ cₜaₜ‖², and varies by chance. The bounds are `SPREAD` standard deviations away; they are 0
    where noise hides the signal.

    Args:
        parts: For each part of the weights, its change, V^½, and how long its signal is at least, whatever the length
            of the change.
    """
    squares = [change.squares - std**2 * change.numel for change, std, _ in parts]
    variance = sum(
        std**2 * (2 * std**2 * change.numel + 4 * max(0.0, square))
        for (change, std, _), square in zip(parts, squares, strict=True)
    )
    square, spread = sum(squares), SPREAD * math.sqrt(variance)
    least = math.hypot(*(directed for _, _, directed in parts))
    low, middle, high = (
        max(least, math.sqrt(max(0.0, value))) / longest
        for value in (square - spread, square, square + spread)
    )
    return middle, low, high


def detects_alignment(parts: Sequence[tuple[int, float]], longest: float, most: float) -> bool:
    """Return whether `signal_share` finds a signal of the full length to be above `most` of it.

    Args:
        parts: The coordinates of each part of the weights, and V^½ there.
    """
    largest = max(std for _, std in parts)
    variance = sum(2 * std**4 * numel for numel, std in parts) + 4 * largest**2 * longest**2
    return longest**2 - SPREAD * math.sqrt(variance) > most**2 * longest**2


def _noise_length(sizes: Doubles, chosen: Doubles, population: int, tries: float) -> Doubles:
    """Return the largest norm of standard normal noise in any `chosen` of a population, of so many coordinates each."""
    from scipy.special import gammaln

    sets = gammaln(population + 1) - gammaln(chosen + 1) - gammaln(population - chosen + 1)
    # 1/(k(k + 1)) adds up to 1 over all k; two kinds of sets share the probability.
    each = tries + math.log(2) + np.log(chosen * (chosen + 1))
    return np.asarray(np.sqrt(sizes) + np.sqrt(2 * (sets + each)))


def _rounding(before: Doubles | float, moved: Doubles, rounds: int) -> Doubles:
    """Return what float32 may add in all rounds; weights on the way are no longer than the first and the limit."""
    return np.asarray(2 * ROUNDING * rounds * (before + moved))


def _slices(first: WeightVector, last: WeightVector) -> Iterator[tuple[Doubles, Doubles]]:
    """Yield w₀ and Δ in slices of whole blocks."""
    for begin in range(0, first.numel, SLICE):
        old, new = (vector.read(begin, begin + SLICE).astype(np.float64) for vector in (first, last))
        yield old, new - old


def _shape_findings(
    change: Change, first: WeightVector, last: WeightVector, std: float, blocks: NDArray[np.int64]
) -> Iterator[Finding]:
    """Yield the block whose values are the farthest from spreading as noise of this size does."""
    if len(blocks) > SHAPED_BLOCKS:
        seed = hashlib.sha256(change.blocks.tobytes()).digest()
        blocks = np.sort(np.random.default_rng(list(seed)).choice(blocks, SHAPED_BLOCKS, replace=False))
    p, worst = LOWER_P / max(1, len(blocks) * len(FREQUENCIES)), (1.0, 0, 0.0, 0.0)
    for block in blocks.tolist():
        old, new = (
            vector.read(block * BLOCK, (block + 1) * BLOCK).astype(np.float64) for vector in (first, last)
        )
        for frequency, turns in zip(FREQUENCIES, powers(np.exp(1j * STEP * (new - old) / std)), strict=True):
            most, length = limit(len(old), frequency, p), abs(turns.mean())
            if length / most > worst[0]:
                worst = length / most, block, most, length
    if worst[0] > 1:
        expected = f"a characteristic function of at most {worst[2]:.4f}, in block {worst[1]}"
        yield Finding(None, expected, f"{worst[3]:.4f}")
