"""The state that a client stores from one request of the server to the next. It is never sent to the server."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from safetensors.torch import load, save

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.learning.local_training import State

TENSOR, SECRETS = "tensor/", "secrets"


@dataclass
class LocalState:
    """A client's state, on the machine that stores the state. Changed in place.

    Attributes:
        tensors: The method's state from round to round, such as dual variables, by name.
        secrets: The state of secure aggregation from leg to leg of one round; empty before its first leg and after its
            last one. A round that is interrupted never resumes, so secrets are not saved with a run.
    """

    tensors: State = field(default_factory=dict)
    secrets: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        """Return the state as the bytes of a safetensors file, for another process; none where nothing is kept."""
        # Copied, because safetensors rejects tensors that share memory.
        tensors = {
            TENSOR + name: tensor.clone(memory_format=torch.contiguous_format)
            for name, tensor in self.tensors.items()
        }
        if self.secrets:
            tensors[SECRETS] = torch.frombuffer(bytearray(self.secrets), dtype=torch.uint8)
        return save(tensors) if tensors else b""

    @classmethod
    def from_bytes(cls, data: bytes) -> "LocalState":
        """Return the state that `to_bytes` wrote."""
        tensors = load(data) if data else {}
        secrets = tensors.pop(SECRETS).numpy().tobytes() if SECRETS in tensors else b""
        return cls({name.removeprefix(TENSOR): tensor for name, tensor in tensors.items()}, secrets)


@dataclass(frozen=True)
class RemoteState:
    """A client's state is stored at its node, and the server never receives it."""


ClientState = LocalState | RemoteState


def local_states(states: Mapping[int, ClientState]) -> dict[int, LocalState]:
    """Return the states of an engine whose clients run on this machine.

    Raises:
        ProblemError: (`E_CLIENTS_LOST`) Some of them are stored at nodes.
    """
    kept = {client: state for client, state in states.items() if isinstance(state, LocalState)}
    away = [str(client) for client in sorted(states.keys() - kept.keys())]
    if away:
        raise ProblemError.of(
            ErrorCode.CLIENTS_LOST,
            where="the state of the unfinished run",
            expected="the nodes, which store what their clients keep from round to round",
            found=f"no state of client {', '.join(away)} on this machine",
            next_step="Start the run again.",
        )
    return kept
