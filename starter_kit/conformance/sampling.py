"""Tests of who takes part, where amplification by sampling is claimed.

Coins of all members must be independent and have the claimed probability, fresh in every round and in every run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.claims import Participation
from starter_kit.conformance.contributions import misreading, readings_of
from starter_kit.conformance.session import Observation, ObservedRun, units_of
from starter_kit.conformance.statistics import (
    APPROXIMATION,
    binomial,
    gamma,
    independent_coins,
    judged,
    measured,
    normal,
    not_made,
)

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Draws:
    """Coins of the members of one kind, clients or units.

    Attributes:
        kind: "clients" or "units".
        heads: Which member (rounds, members) took part.
        could: Which could have, because its client did.
        group: The client (members,) of each.
        sizes: How many examples each member (members,) has.
        rate: The claimed probability.
        misread: The probability that one of the heads is wrong, since noise covers who took part.
    """

    kind: str
    heads: Bools
    could: Bools
    group: NDArray[np.int64]
    sizes: NDArray[np.int64]
    rate: float
    misread: float = 0.0


def draws_of(session: ObservedRun, observations: Sequence[Observation]) -> list[Draws]:
    """Return the coins that a session's rounds show."""
    claims, active = session.claims, _active(session, observations)
    found = []
    if claims.client_rate < 1:
        every, group = np.ones_like(active), np.zeros(active.shape[1], dtype=int)
        sizes = np.array([len(client.examples) for client in session.clients])
        found.append(Draws("clients", active, every, group, sizes, claims.client_rate))
    if claims.participation is not Participation.ALL:
        found.append(unit_draws(session, observations))
    return found


def _active(session: ObservedRun, observations: Sequence[Observation]) -> Bools:
    """Return which clients (rounds, clients) took part."""
    ids = [client.id for client in session.clients]
    return np.array([[client in seen.clients for client in ids] for seen in observations])


def unit_draws(session: ObservedRun, observations: Sequence[Observation]) -> Draws:
    """Return the coins of units that a session's rounds show."""
    active, units = _active(session, observations), units_of(session)
    column = {unit: index for index, unit in enumerate(units)}
    heads = np.zeros((len(observations), len(units)), dtype=bool)
    for reading in readings_of(session, observations):
        columns = [column[unit] for unit in reading.sent.units]
        heads[np.ix_(reading.sent.rounds, columns)] |= reading.included
    group = np.zeros(len(units), dtype=int)
    for index, client in enumerate(session.clients):
        for unit in units_of(session, client.id):
            group[column[unit]] = index
    sizes = np.bincount(session.federation.unit_of)[units]
    claims = session.claims
    return Draws("units", heads, active[:, group], group, sizes, claims.unit_rate, misreading(claims))


def sampling_tests(runs: Sequence[list[Draws]], participation: Participation) -> list[ConformanceTest]:
    """Return the tests of the coins of two runs."""
    tests: list[ConformanceTest] = []
    for first, second in zip(*runs, strict=True):
        if participation is Participation.ALLOCATED and first.kind == "units":
            tests += _allocation_tests(first, second)
            continue
        fixed = participation is Participation.FIXED and first.kind == "units"
        tests += _fixed_tests(first, second) if fixed else _coin_tests(first, second)
        tests += [_repeat_test(first, second), _agreement_test(first, second)]
    if not tests:
        note = "no amplification by sampling is claimed"
        tests.append(not_made("sampling", "who takes part", Verdict.NOT_APPLICABLE, note))
    return tests


def _coin_tests(*runs: Draws) -> list[ConformanceTest]:
    kind, rate = runs[0].kind, runs[0].rate
    heads, tries = (np.concatenate(parts) for parts in zip(*((r.heads, r.could) for r in runs), strict=True))
    count, total = int((heads & tries).sum()), int(tries.sum())
    each = [
        binomial(int((heads & tries)[:, member].sum()), int(tries[:, member].sum()), rate)
        for member in range(heads.shape[1])
    ]
    tests = [
        judged(
            f"sampling-rate-of-{kind}", "rate over the claimed one", count / max(1, total) / rate,
            binomial(count, total, rate),
        ),
        judged(
            f"sampling-rate-of-each-of-the-{kind}", "the least likely rate of one, over the claimed one",
            _extreme_rate(heads & tries, tries, each) / rate, len(each) * min(each),
        ),
        _spread_test(f"sample-sizes-of-{kind}", heads, tries, np.zeros_like(runs[0].group), rate),
    ]  # fmt: skip
    tests.append(_size_test(heads & tries, tries, runs[0]))
    if kind == "units":
        tests.append(_excess_test(heads, tries, runs[0].group, rate))
        if len(set(runs[0].group.tolist())) > 1:
            tests.append(_spread_test("sample-sizes-of-each-client", heads, tries, runs[0].group, rate))
    return tests


def _size_test(heads: Bools, tries: Bools, draws: Draws) -> ConformanceTest:
    """Test that members with many examples take part as often as those with few."""
    name = f"sampling-rate-by-the-size-of-{draws.kind}"
    measures = "members with more examples than the median less those with fewer, in standard deviations"
    sides = np.sign(draws.sizes - np.median(draws.sizes))
    if not sides.any():
        return not_made(name, measures, Verdict.NOT_APPLICABLE, "all have as many examples")
    surplus = float(((heads - draws.rate * tries) * sides).sum())
    variance = draws.rate * (1 - draws.rate) * float((tries * sides**2).sum())
    z = surplus / (APPROXIMATION * variance + 1) ** 0.5
    return judged(name, measures, z, normal(z))


def _excess_test(heads: Bools, tries: Bools, group: NDArray[np.int64], rate: float) -> ConformanceTest:
    """Test that samples far above the expected size are as frequent as independent coins make them."""
    found, expected, count = 0, 0.0, 0
    for member in set(group.tolist()):
        counts = tries[:, group == member].sum(axis=1)
        sizes, counts = (heads & tries)[counts > 0][:, group == member].sum(axis=1), counts[counts > 0]
        limits = np.floor(counts * rate + np.sqrt(counts * rate * (1 - rate)))
        found += int((sizes > limits).sum())
        expected += float(stats.binom.sf(limits, counts, rate).sum())
        count += len(counts)
    name, measures = "large-samples-of-each-client", "samples above one deviation over their expected number"
    if not expected:
        return not_made(name, measures, Verdict.NO_POWER, "no client took part")
    return judged(name, measures, found / expected, independent_coins(found, expected, count))


def _extreme_rate(heads: Bools, tries: Bools, p_values: Sequence[float]) -> float:
    worst = int(np.argmin(p_values))
    return float(heads[:, worst].sum() / max(1, int(tries[:, worst].sum())))


def _spread_test(
    name: str, heads: Bools, tries: Bools, group: NDArray[np.int64], rate: float
) -> ConformanceTest:
    """Test that sample sizes, of each group and round, vary as those of independent coins do."""
    variance = rate * (1 - rate)
    total, expected, spread = 0.0, 0.0, 0.0
    for member in set(group.tolist()):
        sizes = (heads & tries)[:, group == member].sum(axis=1)
        counts = tries[:, group == member].sum(axis=1)
        sizes, counts = sizes[counts > 0], counts[counts > 0]
        total += float(((sizes - counts * rate) ** 2 / (counts * variance)).sum())
        expected += len(sizes)
        spread += float((2 + (1 - 6 * variance) / (counts * variance)).sum())
    if not expected:
        return not_made(name, "variance of sample sizes", Verdict.NO_POWER, "no client took part")
    p_value = gamma(total, expected, spread)
    return judged(name, "variance of sample sizes over that of independent coins", total / expected, p_value)


def _fixed_tests(*runs: Draws) -> list[ConformanceTest]:
    """Test that each client draws the same number, which is at most the claimed share of it."""
    shares, sizes = [], set()
    for run in runs:
        for client in set(run.group.tolist()):
            members = run.group == client
            drawn = run.heads[:, members].sum(axis=1)[run.could[:, members].any(axis=1)]
            sizes |= set(drawn.tolist())
            shares += (drawn / int(members.sum())).tolist()
    return [
        measured("fixed-sample-size", "different sample sizes beyond one", float(len(sizes) - 1), 0.0),
        measured(
            "fixed-sample-share", "largest share over the claimed one",
            max(shares, default=0.0) / runs[0].rate, 1.0 + 1e-9,
        ),
    ]  # fmt: skip


def _allocation_tests(*runs: Draws) -> list[ConformanceTest]:
    """Test that each unit takes part in one round of a cycle, drawn uniformly, by itself and in each cycle again."""
    length, group = round(1 / runs[0].rate), runs[0].group
    whole = len(runs[0].heads) // length * length
    cycles = [run.heads[:whole].reshape(-1, length, len(group)) for run in runs]
    wrong = sum(
        int((each.sum(axis=1) != 1).sum()) + int((run.heads[whole:].sum(axis=0) > 1).sum())
        for each, run in zip(cycles, runs, strict=True)
    )
    readings = sum(run.heads.size for run in runs)
    once = judged(
        "allocation-in-each-cycle", "units that didn't take part once in a cycle", float(wrong),
        independent_coins(wrong, readings * runs[0].misread, readings), "noise explains a few of them",
    )  # fmt: skip
    if not whole or once.verdict is Verdict.FAILED:
        note = "no cycle in which each unit took part once"
        return [once, not_made("allocation", "rounds that units drew", Verdict.NO_POWER, note)]
    first, second = places = [each.argmax(axis=1) for each in cycles]
    every = np.concatenate(places)
    by_client = [every[:, group == client] for client in sorted(set(group.tolist()))]
    later, earlier = (np.concatenate([run[part] for run in places]) for part in (np.s_[1:], np.s_[:-1]))
    return [
        once,
        _places_test("allocation-in-all-cycles", [every.ravel()], length),
        _places_test("allocation-of-all-units", list(every), length),
        _places_test("allocation-of-each-client", [row for rows in by_client for row in rows], length),
        _equal_places_test("allocation-in-the-next-cycle", later, earlier, length),
        _equal_places_test("allocation-in-two-runs", first, second, length),
    ]


def _places_test(name: str, samples: Sequence[NDArray[np.int64]], length: int) -> ConformanceTest:
    """Test how many of each of the samples of draws are of each place in a cycle of this length."""
    total, mean, variance = 0.0, 0.0, 0.0
    for places in samples:
        expected = len(places) / length
        total += float(((np.bincount(places, minlength=length) - expected) ** 2 / expected).sum())
        mean += length - 1
        # Of one draw it has none, and its statistic is its mean.
        variance += 2 * (length - 1) * (1 - 1 / len(places))
    if not variance:
        return not_made(name, "numbers of units in a round", Verdict.NO_POWER, "one unit in each sample")
    measures = "variance of the numbers of units in a round over that of uniform draws"
    return judged(name, measures, total / mean, gamma(total, mean, variance))


def _equal_places_test(
    name: str, some: NDArray[np.int64], others: NDArray[np.int64], length: int
) -> ConformanceTest:
    """Test that draws are equal to independent ones as often as uniform draws are."""
    equal, total = int((some == others).sum()), some.size
    if not total:
        return not_made(name, "equal draws", Verdict.NO_POWER, "one cycle only")
    return judged(
        name,
        "equal draws over their expected number",
        equal * length / total,
        binomial(equal, total, 1 / length),
    )


def _repeat_test(*runs: Draws) -> ConformanceTest:
    """Test that taking part in one round says nothing about the next."""
    count, expected, variance = 0, 0.0, 0.0
    for run in runs:
        pairs = run.could[:-1] & run.could[1:]
        # By the frequency in each client: where numbers are fixed, the claimed rate is a bound only.
        rate = np.array([_frequency(run, run.group == client) for client in run.group.tolist()])
        count += int((run.heads[:-1] & run.heads[1:] & pairs).sum())
        square = rate**2
        expected += float((pairs * square).sum())
        variance += float((pairs * (square * (1 - square) + 2 * square * rate * (1 - rate))).sum())
    z = (count - expected) / (APPROXIMATION * variance + 1) ** 0.5
    name = f"sampling-of-{runs[0].kind}-in-the-next-round"
    return judged(name, "members drawn twice in a row, in standard deviations", z, normal(z))


def _frequency(run: Draws, members: Bools) -> float:
    return float(run.heads[:, members].sum() / max(1, int(run.could[:, members].sum())))


def _agreement_test(first: Draws, second: Draws) -> ConformanceTest:
    """Test that two runs of the same settings draw different samples."""
    both = first.could & second.could
    agreed, total = int((both & (first.heads == second.heads)).sum()), int(both.sum())
    rate = float(first.heads[both].mean()) if total else 0.0
    expected = rate**2 + (1 - rate) ** 2
    z = (agreed - total * expected) / (APPROXIMATION * total * expected * (1 - expected) + 1) ** 0.5
    name = f"sampling-of-{first.kind}-in-two-runs"
    return judged(name, "equal coins of two runs, in standard deviations", z, normal(z))
