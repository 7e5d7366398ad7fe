"""The state that a run needs to resume after an interruption, saved in its unfinished folder after every round.

The model, the state of the server and the clients, and the numbers of the round and of the interruptions are in one
safetensors file, which is replaced atomically: a kill leaves the state of the last whole round. Clients' state is
private, so only the owner can read the folder; it is deleted when the run is complete.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.client_state import AtNode, ClientState, Kept
from starter_kit.learning.local_training import State
from starter_kit.reporting.files import fsync_path

FOLDER, COMPLETE = "resume", "resumed"
WEIGHTS, SERVER, CLIENT = "weights", "server", "client"
NUMBERS = ("round", "breaks")
# The key of the file's metadata that lists the clients whose state is at their nodes.
AT_NODES = "at_nodes"


@dataclass(frozen=True)
class RunState:
    """The run after `round` whole rounds.

    Attributes:
        weights: The model (d,) float32.
        server: The method's state at the server.
        clients: The state of each client, or the note that its node stores it.
        breaks: How often the run was resumed.
        interrupted_rounds: How many rounds began and were never finished; counted by `ResumeFolder`, not saved.
    """

    round: int
    weights: Tensor
    server: State = field(default_factory=dict)
    clients: Mapping[int, ClientState] = field(default_factory=dict)
    breaks: int = 0
    interrupted_rounds: int = 0


@contextmanager
def reading_unfinished_run(unfinished: Path) -> Iterator[None]:
    """Inside the block, report an error of reading as a problem of the unfinished run.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) Something can't be read.
    """
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The unfinished run cannot be resumed.",
            where=str(unfinished),
            expected="the run's files, as they were when it was interrupted",
            found=" ".join(str(error).split()),
            next_step="Restore the files, or delete the folder and start the run again.",
        ) from error


class ResumeFolder:
    """The part of an unfinished run folder that a later process resumes from.

    Every start of a round adds a line to the file `begun`, so that interrupted rounds can be counted whatever happened
    to the processes since: they are the rounds that began, minus those that were finished.
    """

    def __init__(self, unfinished: Path) -> None:
        self.path = unfinished / FOLDER
        self._complete = unfinished / COMPLETE

    def create(self, inputs: str = "") -> None:
        """Create the folder of a run with `inputs`, a hash of the inputs that its settings don't contain."""
        self.path.mkdir(mode=0o700)
        (self.path / "inputs").write_text(inputs, encoding="utf-8")

    @property
    def inputs(self) -> str:
        """The hash that `create` was given."""
        return (self.path / "inputs").read_text(encoding="utf-8")

    def mark_complete(self) -> None:
        """Mark atomically that nothing is left to resume, as the whole run is on disk."""
        self.path.rename(self._complete)
        fsync_path(self._complete.parent)

    def remove(self) -> None:
        """Delete the folder of a run that was marked as complete."""
        if self._complete.exists():
            shutil.rmtree(self._complete)

    def begin(self, round_number: int) -> None:
        """Note that this round begins, before anything of it is sent."""
        with (self.path / "begun").open("a") as file:
            file.write(f"{round_number}\n")
        fsync_path(self.path / "begun")
        fsync_path(self.path)

    @property
    def begun(self) -> int:
        """How often a round began."""
        try:
            return len((self.path / "begun").read_text().split())
        except FileNotFoundError:
            return 0

    def save(self, state: RunState) -> None:
        """Replace the saved state by this one."""
        new = self.path / "state.new"
        metadata = {name: str(getattr(state, name)) for name in NUMBERS}
        at_nodes = [client for client, kept in state.clients.items() if isinstance(kept, AtNode)]
        metadata[AT_NODES] = " ".join(map(str, at_nodes))
        # Copied, because safetensors rejects tensors that share memory.
        copies = {
            name: value.clone(memory_format=torch.contiguous_format)
            for name, value in _by_name(state).items()
        }
        save_file(copies, new, metadata=metadata)
        fsync_path(new)
        new.replace(self.path / "state.safetensors")
        fsync_path(self.path)

    def load(self) -> RunState | None:
        """Load the state after the last whole round; None before the first.

        Raises:
            OSError, ValueError, SafetensorError: The file is not as it was saved.
        """
        path = self.path / "state.safetensors"
        if not path.exists():
            return None
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        if not metadata.keys() >= {*NUMBERS, AT_NODES}:
            raise ValueError(f"{path.name} doesn't say which round it is of")
        numbers = {name: int(metadata[name]) for name in NUMBERS}
        server, clients = _of_parties(tensors)
        return RunState(
            weights=tensors.get(WEIGHTS, torch.empty(0)),
            server=server,
            clients={**clients, **{int(client): AtNode() for client in metadata[AT_NODES].split()}},
            interrupted_rounds=self.begun - numbers["round"],
            **numbers,
        )


def _by_name(state: RunState) -> dict[str, Tensor]:
    """Return the tensors of a state under their names in the file."""
    tensors = {WEIGHTS: state.weights}
    tensors |= {f"{SERVER}/{name}": value for name, value in state.server.items()}
    for client, kept in state.clients.items():
        if isinstance(kept, Kept):
            tensors |= {f"{CLIENT}/{client}/{name}": value for name, value in kept.tensors.items()}
    return tensors


def _of_parties(tensors: Mapping[str, Tensor]) -> tuple[State, dict[int, Kept]]:
    """Return the state of the server and of each client, from the tensors of the file."""
    server: State = {}
    clients: dict[int, Kept] = {}
    for name, tensor in tensors.items():
        party, _, rest = name.partition("/")
        if party == SERVER:
            server[rest] = tensor
        elif party == CLIENT:
            client, _, rest = rest.partition("/")
            clients.setdefault(int(client), Kept()).tensors[rest] = tensor
    return server, clients
