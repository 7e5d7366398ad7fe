"""Where a node stores what its clients keep from message to message, which is never sent to the server."""

from dataclasses import dataclass, field
from typing import Protocol

from flwr.app import Array, ArrayRecord, Context

from starter_kit.engines.flower.messages import BYTES
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.state_bytes import pack_state, unpack_state

TENSORS = "tensors"


class StateStore(Protocol):
    """The states of a node's clients in the run that a context belongs to."""

    def load(self, context: Context, client: int) -> LocalState:
        """Return a copy of a client's state, which is empty at the beginning of a run."""

    def save(self, context: Context, client: int, state: LocalState) -> None:
        """Store a client's state for the run's next message."""


@dataclass
class InMemory:
    """Stores states in the memory of this process, which they never leave, for as long as it serves the same run."""

    _run: int = 0
    _states: dict[int, LocalState] = field(default_factory=dict, repr=False)

    def load(self, context: Context, client: int) -> LocalState:
        if context.run_id != self._run:
            self._run, self._states = context.run_id, {}
        kept = self._states.get(client, LocalState())
        return LocalState(dict(kept.tensors), kept.secrets)

    def save(self, context: Context, client: int, state: LocalState) -> None:
        self._states[client] = state


class InContext:
    """Stores states in the context that Flower's SuperNode passes to the process it starts for each message.

    It is meant for small states: passing on hundreds of megabytes keeps Flower so busy that the node counts as lost.
    """

    def load(self, context: Context, client: int) -> LocalState:
        record = context.state.array_records.get(_name(client))
        return unpack_state(record[TENSORS].data) if record else LocalState()

    def save(self, context: Context, client: int, state: LocalState) -> None:
        data = pack_state(state)
        array = Array(dtype="uint8", shape=(len(data),), stype=BYTES, data=data)
        context.state[_name(client)] = ArrayRecord({TENSORS: array})


def _name(client: int) -> str:
    return f"state of {client}"
