"""What a client keeps between requests, as bytes: for engines whose clients run in other processes."""

import torch
from safetensors.torch import load, save

from starter_kit.federation.client_state import Kept

TENSOR, SECRETS = "tensor/", "secrets"


def pack_state(kept: Kept) -> bytes:
    """`kept` as a safetensors file; nothing where the client keeps nothing."""
    # Copied, for safetensors rejects tensors that share memory.
    tensors = {
        TENSOR + name: tensor.clone(memory_format=torch.contiguous_format)
        for name, tensor in kept.tensors.items()
    }
    if kept.secrets:
        tensors[SECRETS] = torch.frombuffer(bytearray(kept.secrets), dtype=torch.uint8)
    return save(tensors) if tensors else b""


def unpack_state(data: bytes) -> Kept:
    """What `pack_state` packed."""
    tensors = load(data) if data else {}
    secrets = tensors.pop(SECRETS).numpy().tobytes() if SECRETS in tensors else b""
    return Kept({name.removeprefix(TENSOR): tensor for name, tensor in tensors.items()}, secrets)
