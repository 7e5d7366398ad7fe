"""Tensors on their way to a device, without the host waiting for it."""

import torch
from torch import Tensor

# Devices that read the host's memory as it is.
SHARING = frozenset({"cpu", "mps"})


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` in memory that `device` can read by itself; the same tensor if it is there or needn't be."""
    if tensor.device.type != "cpu" or device.type in SHARING:
        return tensor
    return tensor.pin_memory()


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` on `device`; the host goes on while it is copied."""
    ready = pinned(tensor, device)
    return ready.to(device, non_blocking=ready.device.type == "cpu" and device.type not in SHARING)
