"""The server's rules, replayed in float64, against float32 servers that order their operations as they like."""

import numpy as np
import pytest

from evaluator.records.certificate import Floats
from evaluator.records.replay import EPS, Doubles, next_weights, replay_of
from evaluator.records.server_steps import AdamStep, MomentumStep, OtherStep, ServerStep, SumStep

F = np.float32
SIZE, ROUNDS, NORMALIZER = 5000, 60, 132.3
SUM = SumStep(learning_rate=2.5)
MOMENTUM = MomentumStep(learning_rate=0.7, momentum=0.9)
ADAM = AdamStep(learning_rate=0.03, beta_1=0.9, beta_2=0.99, epsilon=1e-3, bias_correction=True)
FED_ADAM = AdamStep(learning_rate=0.03, beta_1=0.9, beta_2=0.99, epsilon=1e-8, bias_correction=False)


class Float32Server:
    """The rule in float32, in either of two orders of its operations."""

    def __init__(self, rule: ServerStep, normalizer: float, *, divides_first: bool) -> None:
        self.rule, self.normalizer, self.divides_first = rule, normalizer, divides_first
        self.first: Floats = np.zeros(SIZE, F)
        self.second: Floats = np.zeros(SIZE, F)
        self.rounds = 0

    def after(self, weights: Floats, total: Floats) -> Floats:
        rule, mean = self.rule, total / F(self.normalizer)
        self.rounds += 1
        match rule:
            case SumStep():
                if self.divides_first:
                    return weights + F(rule.learning_rate) * mean
                return weights + total * F(rule.learning_rate / self.normalizer)
            case MomentumStep():
                self.first = F(rule.momentum) * self.first + mean
                return weights + F(rule.learning_rate) * self.first
            case AdamStep():
                self.first = F(rule.beta_1) * self.first + F(1 - rule.beta_1) * mean
                self.second = F(rule.beta_2) * self.second + F(1 - rule.beta_2) * mean * mean
                above, below = F(1), F(1)
                if rule.bias_correction:
                    above = F(1 - rule.beta_1**self.rounds)
                    below = F(1 - rule.beta_2**self.rounds)
                if self.divides_first:
                    divisor = np.sqrt(self.second / below) + F(rule.epsilon)
                    return weights + F(rule.learning_rate) * (self.first / above / divisor)
                divisor = np.sqrt(self.second) / np.sqrt(below) + F(rule.epsilon)
                return weights + F(rule.learning_rate) / above * self.first / divisor
            case OtherStep():
                raise AssertionError("nobody knows what it does")


def shares_of_the_bound(
    declared: ServerStep, server: Float32Server, normalizer: float = NORMALIZER
) -> Doubles:
    """For each round, how far the server's weights are from the replayed ones at most, as a share of the bound."""
    random = np.random.default_rng(3)
    weights = random.standard_normal(SIZE).astype(F) * F(0.05)
    replay = replay_of(declared, normalizer)
    assert replay is not None
    shares = []
    for _ in range(ROUNDS):
        # Some coordinates are far larger than others, and some are nearly zero.
        total = (random.standard_normal(SIZE) * 10.0 ** random.integers(-6, 3, SIZE)).astype(F)
        after = server.after(weights, total)
        due = next_weights(weights.astype(np.float64), replay.step(total.astype(np.float64)))
        shares.append(float((np.abs(after - due.value) / due.error).max()))
        weights = after
    return np.array(shares)


@pytest.mark.parametrize("divides_first", [False, True])
@pytest.mark.parametrize("rule", [SUM, MOMENTUM, ADAM, FED_ADAM])
def test_a_float32_server_is_within_half_of_the_bound(rule: ServerStep, divides_first: bool) -> None:
    server = Float32Server(rule, NORMALIZER, divides_first=divides_first)
    assert shares_of_the_bound(rule, server).max() < 0.5


@pytest.mark.parametrize(
    ("declared", "used", "normalizer"),
    [
        (SUM, SumStep(learning_rate=2.5001), NORMALIZER),
        (SUM, SUM, 132.31),
        (SUM, MOMENTUM, NORMALIZER),
        (MOMENTUM, MomentumStep(learning_rate=0.7, momentum=0.9001), NORMALIZER),
        (ADAM, ADAM.model_copy(update={"beta_2": 0.9901}), NORMALIZER),
        (ADAM, ADAM.model_copy(update={"bias_correction": False}), NORMALIZER),
        (ADAM, ADAM.model_copy(update={"epsilon": 2e-3}), NORMALIZER),
    ],
)
def test_another_rule_or_parameter_is_far_outside_of_it(
    declared: ServerStep, used: ServerStep, normalizer: float
) -> None:
    server = Float32Server(used, normalizer, divides_first=False)
    assert shares_of_the_bound(declared, server).max() > 10


def test_the_bound_of_the_sum_is_the_documented_multiple_of_eps() -> None:
    replay = replay_of(SUM, NORMALIZER)
    assert replay is not None
    total, weights = np.array([40.0, -3.0, 0.0]), np.array([0.5, 2.0, 0.0])
    step = 2.5 * total / NORMALIZER
    due = next_weights(weights, replay.step(total))
    assert np.allclose(due.value, weights + step, rtol=1e-15)
    assert np.allclose(due.error, 8 * EPS * (np.abs(weights) + np.abs(step)), rtol=1e-12, atol=1e-37)


def test_a_rule_without_a_name_has_no_replay() -> None:
    assert replay_of(OtherStep(description="the median"), 1.0) is None
