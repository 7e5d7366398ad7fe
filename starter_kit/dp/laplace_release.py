"""Output perturbation: the Laplace mechanism on a vector that a client computes from its records' gradients.

Guarantees, for the clip norm C and the relative scale z: the gradient of each record has L1 norm at most C in a sum,
and a vector that one record moves by at most Δ in L1 norm is released with Laplace noise of scale z·Δ in each
coordinate. One release is then 1/z-DP for that record (Dwork et al. 2006).

Sums are in float64 and are rounded to float32 once, after the noise was added: post-processing costs no privacy, so Δ
needn't cover that rounding.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from starter_kit.dp.grid import noised_on_grid
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.laplace import clip_l1, laplace_noise

# What rounding to the grid may add to the L1 sensitivity, as a part of it.
ROUNDED = 2.0**-20


@dataclass(frozen=True)
class LaplaceRelease:
    """The mechanism that a run executes.

    Attributes:
        clip_norm: C.
        relative_scale: z, the scale of the noise over the L1 sensitivity.
        keystream: The keystream of one process; it is never copied to another.
    """

    clip_norm: float
    relative_scale: float
    keystream: Keystream = field(default_factory=Keystream, repr=False, compare=False)

    def clipped_sum(self, gradients: Iterable[Tensor], size: int) -> Tensor:
        """Return the sum (size,), float64, of the records' `gradients` (size,), each clipped.

        A gradient that is not finite adds nothing.

        Raises:
            ValueError: A gradient is not a float32 vector.
        """
        total = torch.zeros(size, dtype=torch.float64)
        for gradient in gradients:
            clipped = clip_l1(gradient, self.clip_norm)
            if clipped is not None:
                total += clipped
        return total

    def noised(self, exact: Tensor, sensitivity: float) -> Tensor:
        """Return `exact` (d,), float64, with the noise that covers `sensitivity`, as a float32 vector (d,).

        Both are rounded to a grid, so that no low bit shows what was added. Rounding `exact` adds at most a step to the
        sensitivity in each coordinate, which the noise covers as well.

        Raises:
            ValueError: The scale of the noise is negative or not finite.
        """
        if not sensitivity:
            return exact.float()
        step = 2.0 ** math.floor(math.log2(sensitivity * ROUNDED / len(exact)))
        scale = self.relative_scale * (sensitivity + step * len(exact))
        return noised_on_grid(exact, laplace_noise(len(exact), scale, self.keystream), step).float()
