"""How many honest runs the noise tests flag, by simulation: `python -m tests.studies false-alarms`.

No test runs this, since a hundred thousand runs take a day; fewer runs show gross errors only. Every
run is one of `SIZES`, with one of `SIGNALS`: updates as the tests must tolerate them, of the largest norm. The bound on
all tests together is `FALSE_ALARM_OF_A_RUN`, so that of 100,000 runs one may be flagged at worst; the limits of most
tests are farther away than that (`tests/evaluator/records/test_false_alarms.py` computes them).
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluator.records import noise_tests
from evaluator.records.noise_tests import Doubles, OpenedRound
from starter_kit.console import log
from tests.studies.markdown import fill, table_row
from tests.studies.study import completed

SEED = 1

TESTS = (
    noise_tests.size,
    noise_tests.block_size,
    noise_tests.repetition,
    noise_tests.shape,
    noise_tests.taken_back,
)
NAMES = [test.__name__ for test in TESTS]


@dataclass(frozen=True)
class Size:
    """A run: its rounds, the opened coordinates of each, and the signal's largest norm in units of the noise."""

    rounds: int
    coordinates: int
    signal: float


SIZES = {
    "one round": Size(rounds=1, coordinates=4 * 1024, signal=32),
    "short vectors": Size(rounds=3, coordinates=700, signal=5),
    "many rounds of few": Size(rounds=32, coordinates=128, signal=10),
    "adapters": Size(rounds=20, coordinates=9 * 1024, signal=108),
    "400 of 400 providers": Size(rounds=4, coordinates=32 * 1024, signal=105),
    "64 blocks of many": Size(rounds=16, coordinates=64 * 1024, signal=115),
}

Signal = Callable[[np.random.Generator, Doubles], Doubles]


def none(random: np.random.Generator, earlier: Doubles) -> Doubles:
    """No update at all; `earlier` is the noise of the round before."""
    return np.zeros_like(earlier)


def alike(random: np.random.Generator, earlier: Doubles) -> Doubles:
    """The same change in every coordinate and round, which turns all values by the same angle."""
    return np.ones_like(earlier)


def sparse(random: np.random.Generator, earlier: Doubles) -> Doubles:
    """A change of one coordinate in a hundred."""
    return random.standard_normal(len(earlier)) * (random.random(len(earlier)) < 0.01)


def against_earlier_noise(random: np.random.Generator, earlier: Doubles) -> Doubles:
    """Training that undoes the noise of the round before."""
    return -earlier


SIGNALS: tuple[Signal, ...] = (none, alike, sparse, against_earlier_noise)


def honest_run(random: np.random.Generator, size: Size, signal: Signal) -> list[OpenedRound]:
    """Return the opened rounds of an honest run."""
    return [
        OpenedRound(number, values, size.signal)
        for number, values in enumerate(_values(random, size, signal), 1)
    ]


def _values(random: np.random.Generator, size: Size, signal: Signal) -> Iterator[Doubles]:
    earlier = np.zeros(size.coordinates)
    for _ in range(size.rounds):
        direction = signal(random, earlier)
        earlier = random.standard_normal(size.coordinates)
        yield earlier + size.signal * direction / max(float(np.linalg.norm(direction)), 1e-9)


@dataclass(frozen=True)
class Flagged:
    """How many of `runs` honest runs were flagged: by any test, and by each under its name."""

    name: str
    size: Size
    seed: int
    runs: int
    any: int
    by: dict[str, int]


def run(
    earlier: list[Flagged] | None, runs: int, sizes: Iterable[str] = SIZES, seed: int = SEED
) -> Iterator[list[Flagged]]:
    """Simulate the sizes that have fewer than `runs` runs; yield the counts of all sizes."""
    current = [found for found in earlier or [] if (SIZES.get(found.name), found.seed) == (found.size, seed)]
    kept = {found.name: found for found in current if found.runs >= runs or found.name not in sizes}
    wanted = [name for name in SIZES if name in kept or name in sizes]
    return completed(wanted, kept, lambda name: count(name, runs, seed))


def count(name: str, runs: int, seed: int = SEED) -> Flagged:
    """Return how many of `runs` honest runs of a size are flagged."""
    began, size, random = time.process_time(), SIZES[name], np.random.default_rng(seed)
    by: Counter[str] = Counter()
    flagged = 0
    for index in range(runs):
        opened = honest_run(random, size, SIGNALS[index % len(SIGNALS)])
        names = [test.__name__ for test in TESTS if test(opened)]
        by.update(names)
        flagged += bool(names)
    log(f"{name}: {flagged} of {runs} flagged {dict(by)}; {time.process_time() - began:.0f} s of CPU time")
    return Flagged(name, size, seed, runs, flagged, {name: by[name] for name in NAMES if by[name]})


def page(counts: Iterable[Flagged]) -> str:
    """Return the page in Markdown."""
    return fill(Path(__file__).with_suffix(".md"), table=map(_row, counts))


def _row(found: Flagged) -> str:
    by = ", ".join(f"{name}: {times}" for name, times in found.by.items())
    size = found.size
    return table_row(found.name, size.rounds, f"{size.coordinates:,}", f"{found.runs:,}", found.any, by)
