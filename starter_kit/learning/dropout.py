"""Dropout that costs little on a CPU.

Each number is dropped with probability k / 2¹⁶, where k is the whole number nearest to 2¹⁶ times the probability in the
model's configuration: 0.100006 for 0.1. The others are divided by the probability of staying, so that the mean stays
what it was, exactly. Whether a number stays follows from 16 bits of its own: a comparison with k. The bits are those of
SFC64, a generator that torch's own generator of the CPU seeds each time: masks follow from a training's seed, and
activations that are computed again have the masks that they had. PyTorch draws each number of a mask by itself, and
takes five times as long.

Work is done in parts that stay in the processor's cache: memory that is new costs more time than the arithmetic.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from evaluator.docvqa.vt5 import VT5
from starter_kit.learning.linear import MIN_WEIGHTS

BITS = 1 << 16
# For fewer numbers, PyTorch's way costs less than calling this one.
MIN_NUMBERS = 1 << 14
# Numbers of a part: 4 MB.
PART = 1 << 20


class Masks:
    """Draws masks, all from one seed.

    Args:
        probability: That of dropping a number, below 1.
    """

    def __init__(self, probability: float) -> None:
        self._dropped = min(round(probability * BITS), BITS - 1)
        seed = int(torch.randint(2**62, ()))
        self._generator = np.random.Generator(np.random.SFC64(seed))

    @property
    def scale(self) -> float:
        """What a number that stays is multiplied with."""
        return BITS / (BITS - self._dropped)

    def draw(self, shape: Sequence[int]) -> Tensor:
        """Return a new mask of this shape, true where a number stays."""
        count = int(np.prod(shape))
        words = self._generator.integers(0, 1 << 64, -(-count // 4), dtype=np.uint64)
        return torch.from_numpy(stay(words.view(np.int16)[:count], self._dropped)).view(*shape)


def stay(bits: NDArray[np.int16], dropped: int) -> NDArray[np.bool_]:
    """Return which numbers stay, for 16 bits of each: all but `dropped` of the 2¹⁶ values."""
    # NumPy's comparison takes a tenth of the time of PyTorch's.
    return np.greater_equal(bits, dropped - BITS // 2)


def as_factors(mask: Tensor, out: Tensor) -> Tensor:
    """Set `out` to 1 where a bool mask of its shape is true, and to 0 elsewhere; return it."""
    # From bool itself, PyTorch copies number by number, which takes nine times as long.
    return out.copy_(mask.view(torch.uint8))


class TrainingDropout(nn.Dropout):
    """`torch.nn.Dropout`, faster in float32 on a CPU where a gradient is needed."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x, and in training with some numbers set to zero and the others scaled."""
        if not (self.training and 0 < self.p < 1 and x.numel() >= MIN_NUMBERS and is_exact_on_cpu(x)):
            return super().forward(x)
        dropped: Tensor = _Dropout.apply(x, self.p)  # type: ignore[no-untyped-call]
        return dropped


def use_fast_dropout(model: VT5) -> None:
    """Replace the dropout layers of `model` by `TrainingDropout`, in place, unless its layers are small."""
    if model.config.d_model**2 < MIN_WEIGHTS:
        return
    for layer in model.modules():
        if type(layer) is nn.Dropout:
            layer.__class__ = TrainingDropout


def is_exact_on_cpu(x: Tensor) -> bool:
    """Whether a training step computes with `x` in float32 on the CPU."""
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        masks = Masks(probability)
        ctx.scale = masks.scale
        mask = torch.empty(x.shape, dtype=torch.bool)
        for part in _parts(mask):
            part.copy_(masks.draw(part.shape))
        ctx.save_for_backward(mask)
        return _masked(x, mask, masks.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return _masked(gradient, mask, ctx.scale), None


def _masked(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    x = x.contiguous()
    result = torch.empty_like(x)
    room = torch.empty(min(PART, x.numel()))
    for source, kept, target in zip(_parts(x), _parts(mask), _parts(result), strict=True):
        factors = as_factors(kept, room[: len(source)]).mul_(scale)
        torch.mul(source, factors, out=target)
    return result


def _parts(x: Tensor) -> Iterator[Tensor]:
    return iter(torch.split(x.view(-1), PART))
