"""How much memory there is: in this machine, as far as this process may use it, and on a device."""

import os
from pathlib import Path

import torch

from evaluator.sandbox.limits import CGROUPS, OWN_CGROUPS, container_memory_bytes


def host_bytes(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> int:
    """Return the machine's memory, or the part that a container or a job of a cluster leaves to this process."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(physical, container_memory_bytes(cgroups, own) or physical)


def free_bytes(device: torch.device) -> int | None:
    """Return the free memory of a device; None where it has none of its own."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    return None


def forget_peak(device: torch.device) -> None:
    """Count the peak of a device's memory from now on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int | None:
    """Return the most memory that tensors took on a device since `forget_peak`; None where nobody counts."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None


def synchronize(device: torch.device) -> None:
    """Wait for a device to finish what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
