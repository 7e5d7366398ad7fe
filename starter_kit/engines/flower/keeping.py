"""What a node keeps for its clients from message to message: in the context that Flower holds for it, and nowhere else.

It lasts as long as the SuperNode runs and the run goes on, and is never sent.
"""

from flwr.app import Array, ArrayRecord, Context

from starter_kit.engines.flower.messages import BYTES
from starter_kit.engines.state_bytes import pack_state, unpack_state
from starter_kit.learning import State

TENSORS = "tensors"


def state_of(context: Context, client: int) -> State:
    """The client's state; empty where it has none yet."""
    record = context.state.array_records.get(_state(client))
    return unpack_state(record[TENSORS].data) if record else {}


def keep_state(context: Context, client: int, state: State) -> None:
    data = pack_state(state)
    if data:
        array = Array(dtype="uint8", shape=(len(data),), stype=BYTES, data=data)
        context.state[_state(client)] = ArrayRecord({TENSORS: array})
    else:
        context.state.pop(_state(client), None)


def _state(client: int) -> str:
    return f"state of {client}"
