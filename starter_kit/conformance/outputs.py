"""Tests of everything else that leaves a round: the model's step, bytes, losses, printed text."""

from collections.abc import Sequence

import numpy as np

from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.session import Observation
from starter_kit.conformance.statistics import Array, measured, not_made
from starter_kit.conformance.subject import Rounds

# Rounding of float32 weights and their sums, relative to the step.
STEP_ROUNDING = 2e-3


def divisor_tests(session: Rounds, runs: Sequence[Sequence[Observation]]) -> list[ConformanceTest]:
    """Return the tests that the model's steps follow from released sums, by factors that are the same in two runs."""
    fits = [_fit(run) for run in runs]
    unexplained = max(rest for _, rest in fits)
    step = "model-follows-from-releases"
    factor, measures = "constant-divisor", "largest difference of the factors of two runs, relative"
    if unexplained > STEP_ROUNDING and not session.claims.sums_only:
        note = "the server's step isn't linear in the released sums, as the plan declares"
        return [
            not_made(step, "part of the model's step", Verdict.NO_POWER, note),
            not_made(factor, measures, Verdict.NO_POWER, note),
        ]
    # The factor of a round without any release is arbitrary.
    seen = [np.array([bool(one.total.any()) for one in run]) for run in runs]
    first, second = (factors * (seen[0] & seen[1]) for factors, _ in fits)
    largest = max(float(np.abs(first).max()), float(np.abs(second).max()), 1e-300)
    return [
        measured(step, "part of the model's step that no released sum explains", unexplained, STEP_ROUNDING),
        measured(factor, measures, float(np.abs(first - second).max()) / largest, STEP_ROUNDING),
    ]


def _fit(run: Sequence[Observation]) -> tuple[Array, float]:
    """Return the factors (T, T) of each step on the sums so far, and the largest part that they don't explain."""
    sums = np.stack([seen.total for seen in run], axis=1)
    factors, worst = np.zeros((len(run), len(run))), 0.0
    scale = max(float(np.linalg.norm(seen.step)) for seen in run) or 1.0
    # Factored once: a long run would take least squares of all coordinates for each of its rounds.
    orthogonal, triangle = np.linalg.qr(sums)
    for number, seen in enumerate(run):
        known = slice(number + 1)
        solved = np.linalg.lstsq(triangle[known, known], orthogonal[:, known].T @ seen.step, rcond=None)[0]
        factors[number, known] = solved
        worst = max(worst, float(np.linalg.norm(seen.step - sums[:, known] @ solved)) / scale)
    return factors, worst


def output_tests(sessions: Sequence[Rounds], runs: Sequence[Sequence[Observation]]) -> list[ConformanceTest]:
    """Return the tests that messages have one size, and that no loss and no provider's name leaves a round."""
    seen = [observation for run in runs for observation in run]
    # The two directions have one size each; secure aggregation has more legs.
    sizes = {tuple(sorted(set(one.sizes))) for one in seen if one.sizes}
    names = [
        name for session in sessions for client in session.federation.clients for name in client.providers
    ]
    printed = "".join(session.text for session in sessions)
    losses, named = sum(one.has_loss for one in seen), sum(name in printed for name in names)
    return [
        measured("message-sizes", "different sets of message sizes beyond one", float(len(sizes) - 1), 0.0),
        measured("no-loss", "rounds that reported a training loss", float(losses), 0.0),
        measured("nothing-printed", "names of providers that were printed", float(named), 0.0),
    ]
