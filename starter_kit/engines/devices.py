"""Which devices clients train on: those of `--devices`, over processes, and over the examples of a step or, in private
runs, over the providers of a client."""

from collections.abc import Sequence

import torch

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.settings.own_methods import own_file
from starter_kit.settings.run_settings import PrivateSettings, RunSettings


def chosen_devices(names: str, settings: RunSettings, processes: int) -> list[torch.device]:
    """Return the devices of a list such as `cuda:0,cuda:1`; none where it is empty.

    Args:
        processes: In how many processes clients train.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A device isn't there, is named twice or isn't of the settings' kind; or a
            process would have several devices for a private method that trains no providers.
    """
    found = [_device(name.strip(), settings.device) for name in names.split(",")] if names.strip() else []
    gpus = [device.index for device in found if device.type == "cuda"]
    if len(set(gpus)) < len(gpus):
        raise _wrong(names, "each GPU once")
    check_divisible(settings, len(found), processes)
    return found


def use_first(devices: Sequence[torch.device]) -> None:
    """Let `cuda` mean the first of the devices in this process."""
    if devices and devices[0].type == "cuda":
        torch.cuda.set_device(devices[0])


def devices_of_process(number: int, processes: int, devices: Sequence[torch.device]) -> list[torch.device]:
    """Return the devices of one of so many processes: several where there are more devices than processes."""
    return list(devices[number::processes]) or [devices[number % len(devices)]]


def check_divisible(settings: RunSettings, devices: int, processes: int = 1) -> None:
    """Check that the work of a process can be divided among so many devices.

    Without privacy they share the examples of each step. Steps of private runs aren't shared: there, each device trains
    providers of its own.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There are more devices than processes for a private method that trains no
            providers.
    """
    if devices <= processes or not isinstance(settings, PrivateSettings) or settings.trains_providers:
        return
    says_so = (
        " Or set trains_providers in its Settings, if it does train providers."
        if own_file(type(settings))
        else ""
    )
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where="--devices",
        expected=f"at most one device for each of --processes: {settings.method} is private, so that they don't share "
        "its steps, and trains no providers, so that each can't train providers of its own",
        found=f"{devices} devices, --processes {processes}",
        next_step=f"Add --processes, so that clients train beside one another, or name fewer devices.{says_so}",
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
