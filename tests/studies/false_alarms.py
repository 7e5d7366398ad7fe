"""How many honest runs the noise tests flag, by simulation: `python -m tests.studies.false_alarms --runs 100000`.

It is no part of the tests, since a hundred thousand runs take a day; with fewer runs it shows gross errors only. Every
run is one of `SIZES`, with one of `SIGNALS`: updates as the tests must tolerate them, of the largest norm. The bound on
all tests together is `FALSE_ALARM_OF_A_RUN`, so that of 100,000 runs one may be flagged at worst; the limits of most
tests are farther away than that (`tests/evaluator/records/test_false_alarms.py` computes them).
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluator.records import noise_tests
from evaluator.records.noise_tests import Doubles, OpenedRound

TESTS = (
    noise_tests.size,
    noise_tests.block_size,
    noise_tests.repetition,
    noise_tests.shape,
    noise_tests.taken_back,
)


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


def count(runs: int, size: Size, random: np.random.Generator) -> Counter[str]:
    """Return how many of `runs` honest runs each test flags, under its name, and how many any of them does."""
    flagged: Counter[str] = Counter()
    for index in range(runs):
        opened = honest_run(random, size, SIGNALS[index % len(SIGNALS)])
        names = [test.__name__ for test in TESTS if test(opened)]
        flagged.update(names)
        flagged["any"] += bool(names)
    return flagged


def page(rows: Iterable[str]) -> str:
    """Return the counts as Markdown."""
    head = [
        "# Simulated honest runs that were flagged",
        "",
        "Written by `python -m tests.studies.false_alarms --page docs/false-alarms.md`: honest noise with signals as",
        "strong as allowed (none, the same in all coordinates, in few, against the round before's noise),",
        "which the tests behind `record.noise_size`, `record.noise_reuse` and `record.noise_shape` should not flag.",
        "What they flag at most is computed, not counted: see [privacy.md](privacy.md). How many genuine runs were",
        "flagged is in [genuine-runs.md](genuine-runs.md).",
        "",
        "| runs of | rounds | coordinates opened in each | runs | flagged | by |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *rows, ""])


def main() -> None:
    """Print the counts, and write them to a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="of each size")
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=list(SIZES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path, help="the file to write the counts to")
    options = parser.parse_args()
    rows = []
    for name in options.sizes:
        began, size = time.process_time(), SIZES[name]
        flagged = count(options.runs, size, np.random.default_rng(options.seed))
        by = ", ".join(
            f"{test.__name__}: {flagged[test.__name__]}" for test in TESTS if flagged[test.__name__]
        )
        seconds = time.process_time() - began
        print(
            f"{name}: {flagged['any']} of {options.runs} flagged {by}; {seconds:.0f} s of CPU time",
            flush=True,
        )
        rows.append(
            f"| {name} | {size.rounds} | {size.coordinates:,} | {options.runs:,} | {flagged['any']} | {by} |"
        )
        if options.page:
            options.page.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
