"""What differs between devices: how tensors reach them without the host waiting, and what they compute in."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

# Devices that read the host's memory as it is.
SHARING = frozenset({"cpu", "mps"})


def precision_of(device: torch.device) -> torch.dtype:
    """Return what a device computes in: bfloat16 on a GPU that has it, else float32."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float32


def allow_tf32(allowed: bool) -> None:
    """Set whether GPUs compute products and convolutions of float32 in TensorFloat-32, from now on in this process."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


@contextmanager
def without_tf32() -> Iterator[None]:
    """Inside the block, GPUs compute float32 in float32."""
    products, convolutions = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    allow_tf32(False)
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = products
        torch.backends.cudnn.allow_tf32 = convolutions


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` in memory that `device` can read by itself; the same tensor if it is there or needn't be."""
    if tensor.device.type != "cpu" or device.type in SHARING:
        return tensor
    return tensor.pin_memory()


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` on `device`; the host goes on while it is copied."""
    ready = pinned(tensor, device)
    return ready.to(device, non_blocking=ready.device.type == "cpu" and device.type not in SHARING)
