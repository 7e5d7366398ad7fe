"""Replaying the server's step on opened blocks: what the next weights are, up to float32 rounding.

A replay computes in float64, whose own errors are 2⁻²⁹ of float32's, and carries beside every value a bound on how far
an honest server's value may be from it, whichever way that server orders its operations:

- one float32 operation is off by at most eps/2 of its result, with eps = 2⁻²³;
- no rule takes more than eight of them, those of its parameters included, from one state to the next, or from the state
  to the weights (most for Adam's mean square: M and the quotient count twice, then the square, 1 − β₂, the product and
  the sum). Twice as many, `ROUNDINGS`, are allowed, for second orders: each of these is off by at most
  ROUNDINGS·eps/2 = 8·eps times the sum of the magnitudes that it is made of;
- an error of a state is carried on by the rule: it shrinks by the decay, and grows by what the new round adds.

So for `sum` the next weights are known to 8·eps·(|w| + |η·u/M|) in each coordinate. `FLOOR` covers products that are
too small for float32. Where the weights of an earlier round aren't opened, their error is carried on too.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evaluator.records.server_steps import AdamStep, MomentumStep, OtherStep, ServerStep, SumStep

EPS = 2.0**-23
ROUNDINGS = 16
ROUNDING = ROUNDINGS * EPS / 2
FLOOR = 2.0**-125

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Bounded:
    """Values (n,), each with a bound (n,) on the distance of an honest server's float32 value from it."""

    value: Doubles
    error: Doubles

    def scaled(self, factor: float) -> "Bounded":
        """Return the product with a number above 0, without rounding."""
        return Bounded(factor * self.value, factor * self.error)

    def where(self, moved: NDArray[np.bool_]) -> "Bounded":
        """Return the values (n,) where they are moved, and exact zeros elsewhere."""
        return Bounded(np.where(moved, self.value, 0.0), np.where(moved, self.error, 0.0))

    def plus(self, added: "Bounded") -> "Bounded":
        """Return the sum, rounded."""
        rounding = ROUNDING * (np.abs(self.value) + np.abs(added.value)) + FLOOR
        return Bounded(self.value + added.value, self.error + added.error + rounding)


def exact(values: Doubles) -> Bounded:
    """Return values (n,) that are known exactly."""
    return Bounded(values, np.zeros(len(values)))


class Replay(Protocol):
    """The server's side of a run, on some coordinates of its vectors; it keeps the state from round to round."""

    def step(self, total: Doubles) -> Bounded:
        """Return what the server adds to the weights after the noised sum `total` (n,); called once for each round."""


def next_weights(weights: Doubles, step: Bounded) -> Bounded:
    """Return the weights (n,) after a step from `weights` (n,) that are known exactly."""
    return exact(weights).plus(step)


def replay_of(rule: ServerStep, normalizer: float) -> Replay | None:
    """Return the replay of a rule from before the first round; None where it has none."""
    match rule:
        case SumStep():
            return _Sum(rule, normalizer)
        case MomentumStep():
            return _Momentum(rule, normalizer)
        case AdamStep():
            return _Adam(rule, normalizer)
        case OtherStep():
            return None


class _Sum:
    def __init__(self, rule: SumStep, normalizer: float) -> None:
        self._factor = rule.learning_rate / normalizer

    def step(self, total: Doubles) -> Bounded:
        return exact(self._factor * total)


class _Momentum:
    def __init__(self, rule: MomentumStep, normalizer: float) -> None:
        self._rule, self._normalizer = rule, normalizer
        self._velocity: Bounded | None = None

    def step(self, total: Doubles) -> Bounded:
        velocity = self._velocity or exact(np.zeros(len(total)))
        self._velocity = velocity.scaled(self._rule.momentum).plus(exact(total / self._normalizer))
        return self._velocity.scaled(self._rule.learning_rate)


class _Adam:
    def __init__(self, rule: AdamStep, normalizer: float) -> None:
        self._rule, self._normalizer = rule, normalizer
        self._mean: Bounded | None = None
        self._square: Bounded | None = None
        self._rounds = 0

    def step(self, total: Doubles) -> Bounded:
        rule, mean = self._rule, total / self._normalizer
        first = (self._mean or exact(np.zeros(len(total)))).scaled(rule.beta_1)
        second = (self._square or exact(np.zeros(len(total)))).scaled(rule.beta_2)
        self._mean = first.plus(exact((1 - rule.beta_1) * mean))
        self._square = second.plus(exact((1 - rule.beta_2) * mean**2))
        self._rounds += 1
        return _quotient(
            self._mean.scaled(rule.learning_rate / self._correction(rule.beta_1)),
            self._square.scaled(1 / self._correction(rule.beta_2)),
            rule.epsilon,
        )

    def _correction(self, beta: float) -> float:
        return 1 - beta**self._rounds if self._rule.bias_correction else 1.0


def _quotient(above: Bounded, square: Bounded, epsilon: float) -> Bounded:
    """Return above/(√square + ε), rounded.

    The square's error moves the divisor to some place between those of its smallest and its largest value.
    """
    least = np.sqrt(np.maximum(square.value - square.error, 0)) + epsilon
    most = np.sqrt(square.value + square.error) + epsilon
    divisor = np.sqrt(square.value) + epsilon
    value = above.value / divisor
    moved = np.abs(value) * (most - least) / least + above.error / least
    return Bounded(value, moved + ROUNDING * np.abs(value))
