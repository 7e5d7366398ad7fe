"""The server's step from the mean of a round's updates, in float32: the same bits wherever it is computed.

With the mean g, every rule of `evaluator.records.server_steps` is a function of each coordinate by itself, and IEEE 754
fixes the result of each of its operations. The kit's server and the evaluator call this one function.
"""

from collections.abc import MutableMapping

import numpy as np
from numpy.typing import NDArray

from evaluator.records.server_steps import AdamStep, MomentumStep, OtherStep, ServerStep, SumStep

Floats = NDArray[np.float32]
# What the server keeps from round to round, by name; empty before the first round.
ServerState = MutableMapping[str, Floats]

VELOCITY, DIRECTION, SIZE = SERVER_VECTORS = ("velocity", "direction", "size")


def stepped(rule: ServerStep, weights: Floats, mean: Floats, state: ServerState) -> Floats:
    """Return the model (d,) after a round with the mean update `mean` (d,); `state` gets new vectors.

    Raises:
        ValueError: The rule can't be computed.
    """
    match rule:
        case SumStep(learning_rate=rate):
            return weights + np.float32(rate) * mean
        case MomentumStep(learning_rate=rate, momentum=momentum):
            state[VELOCITY] = np.float32(momentum) * _kept(state, VELOCITY, weights) + mean
            return weights + np.float32(rate) * state[VELOCITY]
        case AdamStep(bias_correction=False):
            return _adam(rule, weights, mean, state)
        case AdamStep() | OtherStep():
            raise ValueError(f"the rule {rule.rule} has no step that is computed again")


def kept_vectors(rule: ServerStep) -> tuple[str, ...]:
    """Return the names of what the server keeps under this rule, in their order."""
    match rule:
        case MomentumStep():
            return (VELOCITY,)
        case AdamStep():
            return (DIRECTION, SIZE)
        case _:
            return ()


def is_computable(rule: ServerStep) -> bool:
    """Return whether `stepped` has this rule."""
    return not isinstance(rule, OtherStep) and not (isinstance(rule, AdamStep) and rule.bias_correction)


def _adam(rule: AdamStep, weights: Floats, mean: Floats, state: ServerState) -> Floats:
    state[DIRECTION] = (
        np.float32(rule.beta_1) * _kept(state, DIRECTION, weights) + np.float32(1 - rule.beta_1) * mean
    )
    state[SIZE] = np.float32(rule.beta_2) * _kept(state, SIZE, weights) + np.float32(1 - rule.beta_2) * (
        mean * mean
    )
    moved: Floats = np.float32(rule.learning_rate) * state[DIRECTION]
    divisor: Floats = np.sqrt(state[SIZE]) + np.float32(rule.epsilon)
    return weights + moved / divisor


def _kept(state: ServerState, name: str, weights: Floats) -> Floats:
    return state[name] if name in state else np.zeros_like(weights)
