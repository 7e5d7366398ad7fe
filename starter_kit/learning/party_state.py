"""The state of a party, client or server, from round to round: tensors by name."""

from torch import Tensor

State = dict[str, Tensor]


def taken(state: State, prefix: str) -> State:
    """Remove the tensors whose names begin with `prefix` from `state`, and return them by the rest of their names."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}


def put_back(state: State, prefix: str, part: State) -> None:
    """Add the tensors in `part` to `state`, under names that begin with `prefix`."""
    state.update({prefix + name: tensor for name, tensor in part.items()})
