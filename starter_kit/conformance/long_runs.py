"""Tests of a long run, in which the signal of all data vanishes in some rounds and returns.

What a method does once its sums have shrunk, or in one round of many, shows in no short run: a client that stops early
tells everyone that its own data have nothing left to learn. A second run has data in which all units pull the same way,
so that its sums are far larger: whatever the server does by their size differs between the two.
"""

from collections.abc import Sequence

import numpy as np

from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.contributions import neighbor_test, readings_of, residual_test
from starter_kit.conformance.outputs import divisor_tests
from starter_kit.conformance.sampling import unit_draws
from starter_kit.conformance.session import Asked, Observation
from starter_kit.conformance.statistics import APPROXIMATION, judged, normal, not_made
from starter_kit.conformance.subject import Rounds

ROUNDS = 64
# No unit has a signal in these rounds.
SILENT = Asked(silent=(28, 36))
_COUNTS = "participation-after-a-silence"
_MEASURES = "how often units contribute before and after rounds without signal, in standard deviations"


def long_run_tests(
    run: Rounds, observations: Sequence[Observation], aligned: Sequence[Observation]
) -> list[ConformanceTest]:
    """Return the tests of a run, and of one in which all units have the same gradient."""
    begin, end = SILENT.silent
    parts = [observations[:begin], observations[end:]]
    return [
        *_silence_tests(run, parts),
        *_step_tests(run, [observations, aligned]),
    ]


def _step_tests(run: Rounds, runs: Sequence[Sequence[Observation]]) -> list[ConformanceTest]:
    if not run.claims.sums_only:
        # A step that is only nearly linear has other factors with other data.
        note = "the server's step isn't a sum, as the plan declares"
        return [not_made("steps-in-a-long-run", "the model's steps", Verdict.NO_POWER, note)]
    return [test.model_copy(update={"id": f"{test.id}-in-a-long-run"}) for test in divisor_tests(run, runs)]


def _silence_tests(run: Rounds, parts: Sequence[Sequence[Observation]]) -> list[ConformanceTest]:
    claims = run.claims
    if claims.cumulative:
        note = "a message is a part of the client's model, which isn't read from the middle of a run"
        return [not_made(_COUNTS, _MEASURES, Verdict.NOT_APPLICABLE, note)]
    before, after = (readings_of(run, part) for part in parts)
    return [
        _participation_test(run, parts),
        neighbor_test("isolation-after-a-silence", before, after, set(), claims),
        residual_test("isolation-in-a-long-run", [*before, *after], claims),
    ]


def _participation_test(run: Rounds, parts: Sequence[Sequence[Observation]]) -> ConformanceTest:
    counts = []
    for part in parts:
        draws = unit_draws(run, part)
        counts.append((int((draws.heads & draws.could).sum()), int(draws.could.sum())))
    (heads, tries), (later_heads, later_tries) = counts
    if not tries or not later_tries:
        return not_made(_COUNTS, _MEASURES, Verdict.NO_POWER, "no client took part in both parts of the run")
    rate = (heads + later_heads) / (tries + later_tries)
    variance = APPROXIMATION * rate * (1 - rate) * (1 / tries + 1 / later_tries)
    # One coin more or less is never an alarm.
    spread = float(np.sqrt(variance + (1 / tries + 1 / later_tries) ** 2))
    z = (heads / tries - later_heads / later_tries) / spread
    return judged(_COUNTS, _MEASURES, z, normal(z))
