"""The answers of the calculator: computed in bounded time, and cached."""

import hashlib
import time
from dataclasses import dataclass

from django.core.cache import caches
from pydantic import TypeAdapter

from docvqa_site.calculator.curves import Curve
from docvqa_site.calculator.noise_search import NoiseSearch, TooLongError
from docvqa_site.calculator.scenario import Scenario
from evaluator.accounting.bounds import MembershipBounds
from evaluator.accounting.comparison import OFFICIAL, Bound, compare
from evaluator.accounting.membership import membership_bounds, privacy_profiles, true_positive_rates
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.jobs import evaluator_version

# The seconds of computing after which no step is added to a search, and no point to a curve: a page costs about one
# second at most.
SEARCH_SECONDS = 0.6
SECONDS = 0.6
CACHE = "answers"
REMEMBERED_SECONDS = 24 * 3600
# The fewest rounds that a curve covers.
SHORTEST_CURVE = 10
# The false positive rates at which the trade-off is drawn, evenly spaced on a logarithmic axis.
TRADE_OFF_RATES = [10 ** (tenths / 10) for tenths in range(-40, 1)]
# A curve of noise reaches from σ/4 to 4σ.
NOISE_FACTOR = 4


@dataclass(frozen=True)
class Question:
    """A scenario; with a `target`, its noise is calibrated so that ε under the two-stage rule doesn't exceed it."""

    scenario: Scenario
    target: float | None

    @property
    def key(self) -> str:
        scenario = self.scenario
        mechanism = scenario.mechanism.model_dump_json()
        text = f"{evaluator_version()} {self.target} {scenario.rounds} {scenario.delta} {mechanism}"
        return f"calculator:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class Answer:
    """The result of a scenario.

    Attributes:
        scenario: The scenario of the question, with the calibrated noise.
        effective_noise_multiplier: The noise multiplier that protects one provider.
        found: The noise multiplier that each amplification rule requires; empty where the noise was given.
        bounds: ε by every rule and method.
        curves: ε by PLD against the rounds and against the noise.
        membership: What an attack can learn, under the two-stage rule.
        trade_off: The best attack's true positive rate at rising false positive rates.
    """

    scenario: Scenario
    effective_noise_multiplier: float
    found: dict[SamplingRule, float]
    bounds: list[Bound]
    curves: list[Curve]
    membership: MembershipBounds
    trade_off: list[tuple[float, float]]


_ANSWER = TypeAdapter(Answer)


def remembered(question: Question) -> Answer | None:
    """Return the cached answer, if the question was asked before."""
    stored = caches[CACHE].get(question.key)
    return None if stored is None else _ANSWER.validate_python(stored)


def answer(question: Question) -> Answer:
    """Compute and cache the answer. Raises `ValueError`, with the reason, if the scenario can't be accounted."""
    start = time.thread_time()
    scenario, found = _with_noise(question, start + SEARCH_SECONDS)
    bounds = compare(scenario.releases(), scenario.delta)
    curves = _curves(scenario, bounds)
    for values in zip(*(curve.values() for curve in curves), strict=True):
        for curve, value in zip(curves, values, strict=True):
            if time.thread_time() - start < SECONDS:
                curve.add(scenario, value)
    profiles = privacy_profiles(scenario.releases()[SamplingRule.TWO_STAGE])
    rates = true_positive_rates(profiles, TRADE_OFF_RATES)
    computed = Answer(
        scenario,
        scenario.mechanism.effective_noise_multiplier(),
        found,
        bounds,
        curves,
        membership_bounds(profiles, scenario.delta),
        list(zip(TRADE_OFF_RATES, rates, strict=True)),
    )
    caches[CACHE].set(question.key, _ANSWER.dump_python(computed, mode="json"), REMEMBERED_SECONDS)
    return computed


def _with_noise(question: Question, deadline_s: float) -> tuple[Scenario, dict[SamplingRule, float]]:
    """Return the scenario with its noise, and the noise by rules, the deciding one first, as far as time allows."""
    scenario, target = question.scenario, question.target
    if target is None:
        return scenario, {}
    found: dict[SamplingRule, float] = {}
    for rule in scenario.releases():
        try:
            found[rule] = NoiseSearch(scenario, rule, target, deadline_s).smallest(*found.values())
        except TooLongError:
            if not found:
                raise
    return scenario.with_setting("noise_multiplier", found[SamplingRule.TWO_STAGE]), found


def _curves(scenario: Scenario, bounds: list[Bound]) -> list[Curve]:
    """Return the two curves with one point each, the scenario's own, whose ε is known."""
    sigma = scenario.noise_multiplier
    curves = [
        Curve("rounds", 1, max(SHORTEST_CURVE, 2 * scenario.rounds)),
        Curve("noise_multiplier", sigma / NOISE_FACTOR, sigma * NOISE_FACTOR),
    ]
    known = {
        bound.rules[0]: bound.epsilon
        for bound in bounds
        if bound.method == OFFICIAL and bound.epsilon is not None
    }
    for curve in curves:
        curve.points[getattr(scenario, curve.setting)] = known
    return curves
