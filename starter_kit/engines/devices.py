"""Which devices clients train on: those of `--devices`, over processes, and over the examples of a step."""

from collections.abc import Sequence

import torch

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.settings.run_settings import PrivateSettings, RunSettings


def chosen_devices(names: str, settings: RunSettings, processes: int) -> list[torch.device]:
    """Return the devices of a list such as `cuda:0,cuda:1`; none where it is empty.

    Args:
        processes: In how many processes clients train.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A device isn't there, is named twice or isn't of the settings' kind; or
            several devices would share the steps of a private run.
    """
    found = [_device(name.strip(), settings.device) for name in names.split(",")] if names.strip() else []
    gpus = [device.index for device in found if device.type == "cuda"]
    if len(set(gpus)) < len(gpus):
        raise _wrong(names, "each GPU once")
    if isinstance(settings, PrivateSettings) and len(found) > processes:
        raise not_shared(settings.method, len(found), processes)
    return found


def use_first(devices: Sequence[torch.device]) -> None:
    """Let `cuda` mean the first of the devices in this process."""
    if devices and devices[0].type == "cuda":
        torch.cuda.set_device(devices[0])


def devices_of_process(number: int, processes: int, devices: Sequence[torch.device]) -> list[torch.device]:
    """Return the devices of one of so many processes: several where there are more devices than processes."""
    return list(devices[number::processes]) or [devices[number % len(devices)]]


def not_shared(method: str, devices: int, processes: int = 1) -> ProblemError:
    """Return the rejection of more devices than processes for a private method."""
    return ProblemError.of(
        ErrorCode.CONFIGURATION,
        where="--devices",
        expected=f"at most one device for each of --processes, as a step of {method}, which is private, isn't shared",
        found=f"{devices} devices, --processes {processes}",
        next_step="Add --processes, so that clients train beside one another, or name fewer devices.",
    )


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


def _wrong(found: str, expected: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.CONFIGURATION,
        where="--devices",
        expected=expected,
        found=found,
        next_step="Correct the list, or leave it out.",
    )
