"""Where a node stores what its clients keep from message to message, which is never sent to the server."""

from dataclasses import dataclass, field

from flwr.app import Context

from starter_kit.engines.flower.messages import PAYLOAD, pack_bytes
from starter_kit.federation.client_state import LocalState


@dataclass
class InMemory:
    """Stores states in the memory of this process, which they never leave, for as long as it serves the same run."""

    _run: int = 0
    _states: dict[int, LocalState] = field(default_factory=dict, repr=False)

    def load(self, context: Context, client: int) -> LocalState:
        """Return a copy of a client's state, which is empty at the beginning of a run."""
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
        return LocalState.from_bytes(record[PAYLOAD].data) if record else LocalState()

    def save(self, context: Context, client: int, state: LocalState) -> None:
        context.state[_name(client)] = pack_bytes(state.to_bytes())


def _name(client: int) -> str:
    return f"state of {client}"
