"""What a client keeps from one request of the server to the next. It is never sent to the server."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.learning.local_training import State


@dataclass
class Kept:
    """What a client keeps, on the machine where it is kept. It is changed in place.

    Attributes:
        tensors: What the method keeps from round to round, such as dual variables, by name.
        secrets: What secure aggregation keeps from leg to leg of one round; empty before its first leg and after its
            last one. A round that is interrupted never resumes, so secrets are not saved with a run.
    """

    tensors: State = field(default_factory=dict)
    secrets: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class AtNode:
    """A client keeps something at its node, which the server never receives."""


ClientState = Kept | AtNode


def kept_here(states: Mapping[int, ClientState]) -> dict[int, Kept]:
    """The states of an engine whose clients run on this machine.

    Raises:
        ProblemError: (`E_CLIENTS_LOST`) Some of them were left at nodes.
    """
    kept = {client: state for client, state in states.items() if isinstance(state, Kept)}
    away = [str(client) for client in sorted(states.keys() - kept.keys())]
    if away:
        raise ProblemError.of(
            ErrorCode.CLIENTS_LOST,
            where="the state of the unfinished run",
            expected="the nodes, which have what their clients keep from round to round",
            found=f"nothing of client {', '.join(away)} here",
            next_step="Start the run again.",
        )
    return kept
