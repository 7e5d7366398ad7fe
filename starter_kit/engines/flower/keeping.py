"""What the clients of a node keep from message to message; it is never sent."""

from dataclasses import dataclass, field
from typing import Protocol

from flwr.app import Array, ArrayRecord, Context

from starter_kit.engines.flower.messages import BYTES
from starter_kit.engines.state_bytes import pack_state, unpack_state
from starter_kit.federation.client_state import Kept

TENSORS = "tensors"


class Keeping(Protocol):
    """Where it is kept."""

    def state(self, context: Context, client: int) -> Kept:
        """A client's state, to be changed and kept again; empty where it has none yet."""

    def keep(self, context: Context, client: int, state: Kept) -> None:
        """Keep a client's state for the run's next message."""


@dataclass
class InMemory:
    """In the memory of this process, as long as it serves the same run: it never leaves the process."""

    _run: int = 0
    _states: dict[int, Kept] = field(default_factory=dict, repr=False)

    def state(self, context: Context, client: int) -> Kept:
        if context.run_id != self._run:
            self._run, self._states = context.run_id, {}
        kept = self._states.get(client, Kept())
        return Kept(dict(kept.tensors), kept.secrets)

    def keep(self, context: Context, client: int, state: Kept) -> None:
        self._states[client] = state


class InContext:
    """In the context that Flower's SuperNode holds for the node and passes to the process of each message.

    For small states: with hundreds of megabytes Flower is so busy passing them on that the node counts as lost.
    """

    def state(self, context: Context, client: int) -> Kept:
        record = context.state.array_records.get(_name(client))
        return unpack_state(record[TENSORS].data) if record else Kept()

    def keep(self, context: Context, client: int, state: Kept) -> None:
        data = pack_state(state)
        array = Array(dtype="uint8", shape=(len(data),), stype=BYTES, data=data)
        context.state[_name(client)] = ArrayRecord({TENSORS: array})


def _name(client: int) -> str:
    return f"state of {client}"
