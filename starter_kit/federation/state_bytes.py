"""A client's state between requests as bytes, for engines whose clients run in other processes."""

import torch
from safetensors.torch import load, save

from starter_kit.federation.client_state import LocalState

TENSOR, SECRETS = "tensor/", "secrets"


def pack_state(kept: LocalState) -> bytes:
    """Return `kept` as the bytes of a safetensors file; no bytes where the client keeps nothing."""
    # Copied, because safetensors rejects tensors that share memory.
    tensors = {
        TENSOR + name: tensor.clone(memory_format=torch.contiguous_format)
        for name, tensor in kept.tensors.items()
    }
    if kept.secrets:
        tensors[SECRETS] = torch.frombuffer(bytearray(kept.secrets), dtype=torch.uint8)
    return save(tensors) if tensors else b""


def unpack_state(data: bytes) -> LocalState:
    """Return the state that `pack_state` packed."""
    tensors = load(data) if data else {}
    secrets = tensors.pop(SECRETS).numpy().tobytes() if SECRETS in tensors else b""
    return LocalState({name.removeprefix(TENSOR): tensor for name, tensor in tensors.items()}, secrets)
