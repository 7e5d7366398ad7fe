"""Derivatives without gradients: how the loss changes along a direction, from two passes forward.

No activation is kept for a pass backward, so a step takes the memory of inference.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from starter_kit.learning.local_training import Learner


@dataclass(frozen=True)
class Slope:
    """The derivative of the loss along a direction, and the loss there."""

    derivative: float
    loss: float


@torch.no_grad()
def slope(
    learner: Learner, weights: Tensor, direction: Tensor, distance: float, examples: Sequence[int]
) -> Slope:
    """Return (L(w + εz) − L(w − εz))/2ε on these examples, where `distance` is ε, and the mean of both losses.

    Args:
        weights: w (d,).
        direction: z (d,).
    """
    losses = []
    for side in (distance, -distance):
        learner.tensors.write(torch.add(weights, direction, alpha=side))
        losses.append(float(learner._loss(examples)))
    above, below = losses
    return Slope((above - below) / (2 * distance), (above + below) / 2)
