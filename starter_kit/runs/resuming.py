"""The state that a run needs to resume after an interruption, saved in its unfinished folder after every round.

The model, the state of the server, and the numbers of the round and of the interruptions are in one safetensors file,
which is replaced atomically: a kill leaves the state of the last whole round. What a client keeps is in a file of its
own, which that file names:

    state.safetensors       the state after the last whole round, with the names of the clients' files
    client-3-7.safetensors  what client 3 keeps; the last number makes the name new

A client's file is written when its state has changed, in rounds in which it took part. From then on its tensors are
those of the file, mapped into memory and private to the process: preconditioners of gigabytes take memory while they
are in use, and no longer. A disk that can't be read then ends the process, and the run can be resumed.

Clients' state is private, so only the owner can read the folder; it is deleted when the run is complete.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.client_state import ClientState, LocalState, RemoteState
from starter_kit.learning.local_training import State
from starter_kit.reporting.files import fsync_path, replacing

FOLDER, COMPLETE = "resume", "resumed"
STATE, CLIENT_FILE = "state.safetensors", re.compile(r"client-(\d+)-(\d+)\.safetensors")
WEIGHTS, SERVER = "weights", "server"
# The key of the file's metadata that has the numbers, the names of the clients' files, and the clients at nodes.
RUN = "run"


@dataclass(frozen=True)
class TrainingState:
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


@dataclass(frozen=True)
class _Written:
    """What was written of a client.

    Attributes:
        tensors: Each with its version, which every change in place raises.
    """

    file: str
    tensors: Mapping[str, tuple[Tensor, int]]

    def holds(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether these are the tensors that were written, and haven't changed since."""
        return tensors.keys() == self.tensors.keys() and all(
            tensor is self.tensors[name][0] and tensor._version == self.tensors[name][1]
            for name, tensor in tensors.items()
        )


class ResumeFolder:
    """The part of an unfinished run folder that a later process resumes from.

    Every start of a round adds a line to the file `begun`, so that interrupted rounds can be counted whatever happened
    to the processes since: they are the rounds that began, minus those that were finished.
    """

    def __init__(self, unfinished: Path) -> None:
        self.path = unfinished / FOLDER
        self._complete = unfinished / COMPLETE
        self._written: dict[int, _Written] = {}

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

    def save(self, state: TrainingState) -> None:
        """Replace the saved state by this one. Tensors of clients on the CPU become those of their files."""
        files = {
            client: self._client_file(client, kept)
            for client, kept in state.clients.items()
            if isinstance(kept, LocalState) and kept.tensors
        }
        run = {
            "round": state.round,
            "breaks": state.breaks,
            "clients": files,
            "at_nodes": [client for client, kept in state.clients.items() if isinstance(kept, RemoteState)],
        }
        tensors = {WEIGHTS: state.weights}
        tensors |= {f"{SERVER}/{name}": value for name, value in state.server.items()}
        # From here on the files of clients are those of this state.
        self._write(STATE, tensors, {RUN: json.dumps(run)})
        self._remove_others(files.values())

    def _client_file(self, client: int, kept: LocalState) -> str:
        """Return the name of the file of a client's state, which is written unless it is there already."""
        written = self._written.get(client)
        if written and written.holds(kept.tensors):
            return written.file
        number = 1 + max((int(found[2]) for found in self._client_files()), default=0)
        name = f"client-{client}-{number}.safetensors"
        self._write(name, kept.tensors, {})
        for tensor_name, mapped in _mapped(self.path / name).items():
            if kept.tensors[tensor_name].device.type == "cpu":
                kept.tensors[tensor_name] = mapped
        self._written[client] = _Written(
            name, {key: (tensor, tensor._version) for key, tensor in kept.tensors.items()}
        )
        return name

    def _write(self, name: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        with replacing(self.path / name) as new:
            save_file(_separate(tensors), new, metadata=dict(metadata))

    def _client_files(self) -> list[re.Match[str]]:
        found = (CLIENT_FILE.fullmatch(path.name) for path in self.path.iterdir())
        return [each for each in found if each]

    def _remove_others(self, files: Iterable[str]) -> None:
        """Delete clients' files of earlier states, and what a process left that was killed before its state was one."""
        kept = set(files)
        for found in self._client_files():
            if found.string not in kept:
                (self.path / found.string).unlink()

    def load(self) -> TrainingState | None:
        """Load the state after the last whole round; None before the first.

        Raises:
            OSError, ValueError, SafetensorError: The file is not as it was saved.
        """
        path = self.path / STATE
        if not path.exists():
            return None
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        if RUN not in metadata:
            raise ValueError(f"{path.name} doesn't say which round it is of")
        run = json.loads(metadata[RUN])
        local = {
            int(client): LocalState(_mapped(self.path / file)) for client, file in run["clients"].items()
        }
        return TrainingState(
            round=run["round"],
            weights=tensors.get(WEIGHTS, torch.empty(0)),
            server={
                name.removeprefix(f"{SERVER}/"): tensor
                for name, tensor in tensors.items()
                if name.startswith(f"{SERVER}/")
            },
            clients={**local, **{client: RemoteState() for client in run["at_nodes"]}},
            breaks=run["breaks"],
            interrupted_rounds=self.begun - run["round"],
        )


def _mapped(path: Path) -> State:
    """Return the tensors of a file, which are read when they are used; changes to them stay in the process."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous tensors of which no two share memory, as safetensors requires; copies where they must be."""
    seen: set[int] = set()
    separate = {}
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        whole = tensor.is_contiguous() and storage.nbytes() == tensor.numel() * tensor.element_size()
        if not whole or storage.data_ptr() in seen:
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        else:
            seen.add(storage.data_ptr())
        separate[name] = tensor
    return separate
