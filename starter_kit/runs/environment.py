"""What a run was computed with, as its summary states it: results are the same only on the same kind of machine."""

import platform
from importlib.metadata import version

import torch

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")


def device_name(device: torch.device) -> str:
    """Return the kind of processor or GPU, as far as the system names it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {platform.machine()}, {torch.get_num_threads()} threads"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
