"""The devices of `--devices`, one for each process in which clients train."""

from collections.abc import Sequence

import torch

from evaluator.errors import ErrorCode, ProblemError


def chosen_devices(names: str, kind: str, processes: int) -> list[torch.device]:
    """Return the devices of a list such as `cuda:0,cuda:1`; none where the list is empty.

    Args:
        kind: The device of the settings, `cpu` or `cuda`.
        processes: The number of processes in which clients train.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A device doesn't exist, is named twice or is of another kind; or there are
            more devices than processes.
    """
    found = [_device(name.strip(), kind) for name in names.split(",")] if names.strip() else []
    gpus = [device.index for device in found if device.type == "cuda"]
    if len(set(gpus)) < len(gpus):
        raise _wrong(names, "each GPU once")
    if len(found) > processes:
        raise _wrong(
            f"{len(found)} devices, --processes {processes}",
            "at most one device for each process",
            next_step="Add --processes, so that clients train at the same time, or name fewer devices.",
        )
    return found


def use_device(devices: Sequence[torch.device], process: int = 0) -> None:
    """Make `cuda` mean one device in this process: its own of `devices`, or the next GPU where none are named."""
    device = (
        devices[process % len(devices)]
        if devices
        else torch.device("cuda", process % torch.cuda.device_count())
    )
    if device.type == "cuda":
        torch.cuda.set_device(device)


def _device(name: str, kind: str) -> torch.device:
    expected = f"a list such as {'cuda:0,cuda:1' if kind == 'cuda' else 'cpu,cpu'}, as device is {kind}"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise _wrong(name, expected) from error
    if device.type != kind or (kind == "cuda" and device.index is None):
        raise _wrong(name, expected)
    if kind == "cuda" and device.index >= torch.cuda.device_count():
        raise _wrong(name, f"one of the {torch.cuda.device_count()} GPUs that torch finds on this machine")
    return device


def _wrong(found: str, expected: str, next_step: str = "Correct the list, or leave it out.") -> ProblemError:
    return ProblemError.of(
        ErrorCode.CONFIGURATION, where="--devices", expected=expected, found=found, next_step=next_step
    )
