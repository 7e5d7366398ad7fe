"""The examination of a method: a function from `Inputs` to a `Result`, both JSON.

`examine` runs harness and method in this process; `processes.examine_apart` gives them processes of their own, and
`starter_kit.examining.conformance.examine_confined` separates the two.
"""

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.units import PrivacyUnit
from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.claims import Claims, unsupported
from starter_kit.conformance.contributions import (
    Reading,
    background_test,
    bound_tests,
    carried_state_test,
    finite_test,
    freshness_test,
    isolation_tests,
    readings_of,
)
from starter_kit.conformance.lengths import ladder_readings, ladder_tests, rungs
from starter_kit.conformance.long_runs import ROUNDS, SILENT, long_run_tests
from starter_kit.conformance.noise import empty_round_test, least_noise_test, noise_tests, standardized
from starter_kit.conformance.outputs import divisor_tests, output_tests
from starter_kit.conformance.results import Group, Inputs, Result
from starter_kit.conformance.sampling import draws_of, sampling_tests
from starter_kit.conformance.session import Asked, Observation, Start, releases_of
from starter_kit.conformance.statistics import Array, not_made
from starter_kit.conformance.subject import LocalSubject, Rounds, Subject
from starter_kit.conformance.synthetic import Federation, make_federation
from starter_kit.conformance.variants import LEAST_NOISE
from starter_kit.randomness import Stream
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import RunSettings

# Draws of pure noise: noise that is 3 % too small is then 16 standard deviations away.
NOISE_DRAWS = 140_000
# Coins of sampling: so many that a rate 10 % too high for one half of the providers, and too low for the other, is 12
# standard deviations away, within these limits.
MIN_COINS, MAX_COINS = 4000, 32_000
# The clip norm over the length of an update: an update is huge.
CLIPPED_TO = 1e-4
SAMPLE_SIZE = 512
MAX_UNITS = 20_000
# Of a run of many rounds: units in all, or clients where those are the unit.
MAX_MEMBERS, MAX_CLIENTS = 400, 96
# Of a second run with the same data.
COMPARED_ROUNDS = 12
# Code that takes another path for large models does so above some number of parameters.
LARGE_MODEL, LARGE_ROUNDS = 100_001, 3
HUGE = 1e36


def examine(inputs: Inputs) -> Result:
    """Examine a method in this process."""
    begun = time.perf_counter()
    try:
        result = examine_subject(LocalSubject(_load(inputs)).as_examined, inputs)
    except ProblemError as error:
        result = Result(method=inputs.method, seed=inputs.seed, problems=error.problems)
    return result.model_copy(update={"seconds": time.perf_counter() - begun})


def _load(inputs: Inputs) -> RunSettings:
    try:
        return load_settings(inputs.method, inputs.changes)
    except ProblemError as error:
        raise ProblemError.of(
            ErrorCode.CONFORMANCE_IMPORT, where=inputs.method, found=error.problems[0]
        ) from error


def examine_subject(subject: Callable[[], Subject], inputs: Inputs) -> Result:
    """Examine the method that `subject` returns with exact messages.

    Raises:
        ProblemError: It failed, can't be examined, or released values that aren't finite.
    """
    with _problems_of_the_method():
        method = subject()
        examination = Examination(method, random.Random(inputs.seed))  # noqa: S311
        sample = examination.sample() if inputs.with_sample else []
        tests = [
            test
            for group in (inputs.only if inputs.only is not None else Group)
            for test in examination.tests(group)
        ]
    return Result(
        method=inputs.method,
        method_sha256=method.method_sha256,
        unit=examination.claims.unit,
        seed=inputs.seed,
        tests=tests,
        sample=sample,
    )


@contextmanager
def _problems_of_the_method() -> Iterator[None]:
    """Make whatever the method raises inside the block a problem; its own problems pass.

    Raises:
        ProblemError: (`E_CONFORMANCE_FAILED`) It raised something.
    """
    try:
        yield
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError.of(
            ErrorCode.CONFORMANCE_FAILED,
            where="a round on synthetic data",
            expected="a method that runs on any clients and tensors",
            found=f"{type(error).__name__}: {error}",
        ) from error


@dataclass(frozen=True)
class _Runs:
    """Two runs on the same data and one on neighboring data, with readable contributions."""

    sessions: list[Rounds]
    observations: list[list[Observation]]
    readings: list[list[Reading]]
    changed: set[int]


class Examination:
    """The runs that one examination makes.

    Args:
        subject: The method, with exact messages.
        draw: The harness's own choices.
    """

    def __init__(self, subject: Subject, draw: random.Random) -> None:
        self._subject = subject
        self._draw = draw
        self._relative = draw.uniform(150, 300)
        self._clip_norm = draw.choice([draw.uniform(0.3, 0.8), draw.uniform(1.3, 3.0)])
        # Its units are those of the claims, so the first ones are asked for on any data.
        noisy = subject.with_noise(self._relative, self._clip_norm)
        probe = make_federation(
            draw, PrivacyUnit.PROVIDER, clients=3, units=self._least(), coordinates=4, background=64
        )
        self.claims: Claims = noisy.session(probe).claims
        self._noisy = noisy

    @cached_property
    def _noise(self) -> tuple[Rounds, list[Observation]]:
        """A run without any signal."""
        # With data of its own, so that a second process that asks for nothing else makes the same.
        return self._pure_noise(self._noisy)

    def sample(self) -> list[float]:
        """Return noise of the first round, over its claimed scale."""
        session, observations = self._noise
        rows = [each.rows[0] for each in releases_of(session, observations)]
        return standardized(rows[0][:SAMPLE_SIZE], session.claims).tolist() if rows else []

    def tests(self, group: Group) -> list[ConformanceTest]:
        """Make the tests of a group."""
        match group:
            case Group.NOISE:
                session, observations = self._noise
                return noise_tests(releases_of(session, observations), session.claims)
            case Group.CONFIGURED:
                return [self._as_configured()]
            case Group.CONTRIBUTIONS:
                return self._contribution_tests()
            case Group.LENGTHS:
                return self._of_each_length()
            case Group.LONG_RUN:
                return self._long_run()
            case Group.LARGE_MODEL:
                return self._large_model()
            case Group.NOT_FINITE:
                return self._not_finite()
            case Group.EMPTY:
                return [self._empty_rounds()]
            case Group.CARRIED:
                return [self._carried_state()]
            case Group.SAMPLING:
                return self._sampling()

    def _contribution_tests(self) -> list[ConformanceTest]:
        runs = self._contributions()
        first, second, neighbor = runs.readings
        claims, background = runs.sessions[0].claims, runs.sessions[0].federation.background
        return [
            *bound_tests([*first, *second], claims),
            *isolation_tests(first, neighbor, runs.changed, claims),
            background_test(first, background, claims),
            freshness_test(first, second, background),
            *divisor_tests(runs.sessions[0], [run[:COMPARED_ROUNDS] for run in runs.observations[:2]]),
            *output_tests(runs.sessions, runs.observations),
        ]

    @property
    def _coordinates(self) -> int:
        return 12 if self.claims.norm == 2 else 4

    @property
    def _rate(self) -> float:
        return self.claims.client_rate * self.claims.unit_rate

    def _members(self, participants: int) -> float:
        """Return how many units have so many participants in a round, within what can be run."""
        most = MAX_CLIENTS if self.claims.unit is PrivacyUnit.CLIENT else MAX_MEMBERS
        return min(most, participants / self._rate)

    def _least(self) -> int:
        """Return so many units that each client has what a fixed sample size needs."""
        sampling, clients = self._subject.values.get("sampling") or {}, self._clients()
        need = max(sampling.get("providers_per_client") or 0, sampling.get("fewest_providers") or 0)
        units = max(12, 3 * need * clients)
        if max(units, clients) > MAX_UNITS:
            raise unsupported(f"sample sizes that leave some of {MAX_UNITS} units undrawn", sampling)
        return int(units)

    def _clients(self) -> int:
        sampling = self._subject.values.get("sampling") or {}
        return max(4, sampling.get("clients_per_round") or 0)

    def _federation(self, units: float, background: int, *, clients: int = 0) -> Federation:
        return make_federation(
            self._draw,
            self.claims.unit,
            clients=clients or self._clients() + self._draw.randint(0, 1),
            units=max(math.ceil(units), self._least() if self.claims.unit is PrivacyUnit.PROVIDER else 0),
            coordinates=self._coordinates,
            background=background,
        )

    def _signal_subject(self, relative: float, federation: Federation) -> Subject:
        """Return the method with settings whose clip norm is far below the length of an update."""
        length = self._update_length(federation)
        clip_norm = length * CLIPPED_TO * self._draw.uniform(0.5, 2.0)
        return self._subject.with_noise(relative, clip_norm)

    def _update_length(self, federation: Federation) -> float:
        learner, example = federation.learner(), federation.clients[0].examples[:1]
        gradient = float(torch.linalg.vector_norm(learner.losses.gradient(example), ord=self.claims.norm))
        if self._subject.local is None:
            return gradient
        trained = learner.train(torch.zeros(federation.size), example, self._subject.local, Stream(0))
        return min(gradient, float(trained.change.norm()))

    def _pure_noise(self, subject: Subject) -> tuple[Rounds, list[Observation]]:
        federation = self._federation(14, self._draw.randint(4000, 6000))
        session = subject.session(federation.scaled(torch.zeros(federation.units)))
        per_round = len(session.clients) * self.claims.client_rate if self.claims.per_message else 1
        if subject.is_masked:
            per_round = 1
        return session, session.rounds(max(8, math.ceil(NOISE_DRAWS / federation.size / per_round)))

    def _as_configured(self) -> ConformanceTest:
        federation = self._federation(14, 20_000)
        session = self._subject.session(federation.scaled(torch.zeros(federation.units)))
        for _ in range(5):
            seen = session.rounds(1, Asked(start=Start.ZERO_WEIGHTS))[0]
            if seen.releases:
                return least_noise_test(next(iter(seen.releases.values()))[None, :], session.claims)
        measures = "noise over the claimed one, at least"
        return not_made("noise-as-configured", measures, Verdict.NO_POWER, "no client took part in 5 rounds")

    def _contributions(self) -> _Runs:
        federation = self._federation(min(96, max(12, 12 / self._rate)), self._draw.randint(600, 900))
        subject = self._signal_subject(LEAST_NOISE, federation)
        changed, neighbor = self._neighbor(federation)
        least = 12 if self.claims.law == "gaussian" else 120
        count = min(120, max(least, math.ceil(200 / (federation.units * self._rate))))
        sessions = [subject.session(data) for data in (federation, federation, neighbor)]
        # What is compared between the two runs of the same data shows in a few rounds.
        observations = [
            session.rounds(rounds)
            for session, rounds in zip(sessions, (count, COMPARED_ROUNDS, count), strict=True)
        ]
        readings = [readings_of(*run) for run in zip(sessions, observations, strict=True)]
        return _Runs(sessions, observations, readings, changed)

    def _neighbor(self, federation: Federation) -> tuple[set[int], Federation]:
        """Return a third of the units, and the data in which theirs are removed or replaced."""
        changed = {unit for unit in range(federation.units) if self._draw.random() < 1 / 3}
        if self.claims.unit is PrivacyUnit.RECORD:
            signs = [-1.0 if unit in changed else 1.0 for unit in range(federation.units)]
            return changed, federation.scaled(torch.tensor(signs))
        return changed, federation.without(changed)

    def _of_each_length(self) -> list[ConformanceTest]:
        clip_norm = self._draw.uniform(0.5, 2.0)
        federation = self._federation(self._members(96), 400)
        lengths = torch.from_numpy(rungs(federation.units) * clip_norm)
        federation = federation.of_lengths(lengths, self.claims.norm)
        subject = self._subject.with_noise(LEAST_NOISE, clip_norm)
        changed, neighbor = self._neighbor(federation)
        readings = []
        for data, count in ((federation, ROUNDS), (neighbor, COMPARED_ROUNDS)):
            session = subject.session(data, quick=True, plain=True)
            observations = session.rounds(count, Asked(start=Start.STATELESS))
            readings.append(ladder_readings(session, observations))
        return ladder_tests(readings[0], readings[1], changed, session)

    def _long_run(self) -> list[ConformanceTest]:
        federation = self._federation(self._members(24), 400)
        subject = self._signal_subject(LEAST_NOISE, federation)
        sessions = [
            subject.session(data, quick=True, plain=True) for data in (federation, federation.aligned())
        ]
        run, aligned = (session.rounds(ROUNDS, SILENT) for session in sessions)
        return long_run_tests(sessions[0], run, aligned)

    def _large_model(self) -> list[ConformanceTest]:
        background = self._draw.randint(LARGE_MODEL, LARGE_MODEL * 6 // 5)
        federation = self._federation(min(96, max(12, 12 / self._rate)), background)
        subject = self._signal_subject(LEAST_NOISE, federation)
        session = subject.session(federation, quick=True)
        readings = readings_of(session, session.rounds(LARGE_ROUNDS))
        tests = [
            *bound_tests(readings, session.claims),
            background_test(readings, federation.background, session.claims),
        ]
        return [test.model_copy(update={"id": f"{test.id}-of-a-large-model"}) for test in tests]

    def _not_finite(self) -> list[ConformanceTest]:
        federation = self._federation(min(96, max(18, 18 / self._rate)), 300)
        subject = self._signal_subject(LEAST_NOISE, federation)
        kinds = [(math.nan, math.inf, HUGE)[unit % 3] for unit in range(federation.units)]
        session = subject.session(federation.scaled(torch.tensor(kinds)))
        count = min(20, max(4, math.ceil(40 / (federation.units * self._rate))))
        observations = session.rounds(count, Asked(start=Start.ZERO_WEIGHTS, finite=False))
        tests = [finite_test(observations)]
        if tests[0].verdict is Verdict.PASSED:
            bound = bound_tests(readings_of(session, observations), session.claims)[0]
            tests.append(bound.model_copy(update={"id": "clip-bound-of-huge-updates"}))
        return tests

    def _empty_rounds(self) -> ConformanceTest:
        federation = self._federation(24, 400)
        subject = self._signal_subject(LEAST_NOISE, federation)
        empty = subject.without_participants()
        name, measures = "empty-rounds", "noise of empty rounds over the claimed one"
        if empty is None:
            return not_made(name, measures, Verdict.NOT_APPLICABLE, "every round has participants")
        session = empty.session(federation)
        observations = session.rounds(8, Asked(start=Start.ZERO_WEIGHTS))
        expected = sum(
            len(seen.clients) if session.claims.per_message and not subject.is_masked else 1
            for seen in observations
        )
        if not expected:
            return not_made(name, measures, Verdict.NOT_APPLICABLE, "a round without clients has no messages")
        return empty_round_test(releases_of(session, observations), session.claims, expected)

    def _carried_state(self) -> ConformanceTest:
        members = min(200, 24 / self._rate)
        federation = self._federation(members, 20_000, clients=2).aligned()
        relative = 3.0 if self.claims.law == "gaussian" else 0.35
        subject = self._signal_subject(relative, federation)
        rows: list[Array] = []
        for _ in range(8 if self.claims.per_message else 4):
            session = subject.session(federation)
            observations = session.rounds(2, Asked(silent=(1, 2)))
            rows += [e.rows[-1] for e in releases_of(session, observations) if e.rounds[-1] == 1]
        # A client's state may contain its noised message, and pull all its providers that way.
        slack = 2 * federation.units**2 / relative**2 / federation.size**0.5 / max(1, len(rows)) ** 0.5
        return carried_state_test(rows, federation.pattern, slack, session.claims)

    def _sampling(self) -> list[ConformanceTest]:
        if self.claims.draws_nobody:
            return sampling_tests([[], []], self.claims.participation)
        rate = self.claims.unit_rate if self.claims.unit_rate < 1 else self.claims.client_rate
        coins = min(MAX_COINS, max(MIN_COINS, 14_700 * (1 - rate) / rate))
        federation = self._federation(64, 200)
        subject = self._signal_subject(LEAST_NOISE, federation)
        count = math.ceil(coins / federation.units / self.claims.client_rate / 2)
        runs = []
        for _ in range(2):
            session = subject.session(federation, quick=True, plain=True)
            runs.append(draws_of(session, session.rounds(min(400, max(40, count)))))
        return sampling_tests(runs, self.claims.participation)
