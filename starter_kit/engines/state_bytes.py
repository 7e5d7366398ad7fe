"""What a client keeps from round to round, as bytes: for engines whose clients run in other processes."""

import torch
from safetensors.torch import load, save

from starter_kit.learning.local_training import State


def pack_state(state: State) -> bytes:
    """`state` as a safetensors file; nothing for an empty one."""
    if not state:
        return b""
    # Copied, for safetensors rejects tensors that share memory.
    return save({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()})


def unpack_state(data: bytes) -> State:
    """The state that `pack_state` wrote."""
    return load(data) if data else {}
