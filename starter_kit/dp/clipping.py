"""Bounding what one provider contributes: its whole update, as one vector, has L2 norm at most the clip norm.

The bound holds for the float32 vector that is returned, not only for real numbers: products are made in float64 and
leave room for their rounding, and for that of the norm, which is a sum in float64 in any order: so the bound holds on a
GPU as on a CPU. An update that is not finite has no norm to bound and contributes nothing.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

# The rounding of a product to float32 costs at most 2⁻²⁴, and that of a norm of 2²⁸ squares at most 2⁻²⁵.
ROUNDING_ROOM = 1 - 2.0**-22
# How many coordinates are squared or scaled at a time, in float64.
CPU_CHUNK, GPU_CHUNK = 1 << 18, 1 << 24


def clip(update: Tensor, clip_norm: float) -> Tensor | None:
    """Scale `update`, a float32 vector (d,) over all trained tensors, down to L2 norm at most `clip_norm`.

    Returns None for an update that is not finite. A tied tensor is in the vector once, because the model has one
    parameter for it. The norm before clipping is private and is not returned.

    Raises:
        ValueError: `update` is not a float32 vector or `clip_norm` is not positive.
    """
    if update.dtype != torch.float32 or update.dim() != 1:
        raise ValueError(f"an update is a float32 vector, not {update.dtype} of shape {tuple(update.shape)}")
    if not clip_norm > 0:
        raise ValueError(f"a clip norm is positive, not {clip_norm}")
    norm = _norm(update)
    if not math.isfinite(norm):
        return None
    # The norm may be rounded down.
    if norm <= clip_norm * ROUNDING_ROOM:
        return update
    scale = clip_norm / norm * ROUNDING_ROOM
    clipped = torch.empty_like(update)
    for part, scaled in zip(_in_float64(update), _chunks(clipped), strict=True):
        scaled.copy_(part.mul_(scale))
    return clipped


def _norm(update: Tensor) -> float:
    """Return the L2 norm of `update` (d,) in float64, without a float64 copy of the whole vector."""
    return float(
        torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(part) for part in _in_float64(update)])
        )
    )


def _in_float64(update: Tensor) -> Iterator[Tensor]:
    """Yield parts of `update` (d,) as float64, each in the memory of the one before: memory that is new costs more time
    than the arithmetic."""
    parts = _chunks(update)
    room = torch.empty(len(parts[0]), dtype=torch.float64, device=update.device)
    for part in parts:
        yield room[: len(part)].copy_(part)


def _chunks(vector: Tensor) -> Sequence[Tensor]:
    size = CPU_CHUNK if vector.device.type == "cpu" else GPU_CHUNK
    return [vector] if len(vector) <= size else torch.split(vector, size)
