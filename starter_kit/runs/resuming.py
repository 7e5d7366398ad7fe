"""What a run needs to go on after a break, kept in its unfinished folder after every round.

The models, what the server and the clients keep from round to round, and the numbers of the round and of the breaks are
one safetensors file, which is replaced at once: a kill leaves the state of the last whole round. Clients' state is
private, so the folder is for its owner only; it is deleted when the run is complete.
"""

import os
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
from starter_kit.learning.local_training import State

FOLDER, RETIRED = "resume", "resumed"
WEIGHTS, SERVER, CLIENT = "weights", "server", "client"
NUMBERS = ("round", "breaks")


@dataclass(frozen=True)
class RunState:
    """The run after `round` whole rounds.

    Attributes:
        weights: The model (d,).
        breaks: How often the run has gone on after a break.
        broken_rounds: How many rounds began and were never finished; not part of what is saved, see `ResumeFolder`.
    """

    round: int
    weights: Tensor
    server: State = field(default_factory=dict)
    clients: Mapping[int, State] = field(default_factory=dict)
    breaks: int = 0
    broken_rounds: int = 0


def make_durable(path: Path) -> None:
    """Have what was written to a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def as_it_was_left(unfinished: Path) -> Iterator[None]:
    """What can't be read of an unfinished run is rejected (`E_RUN_FOLDER`)."""
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The unfinished run can't go on.",
            where=str(unfinished),
            expected="its files, as they were when it was interrupted",
            found=" ".join(str(error).split()),
            next_step="Put them back, or delete the folder and begin again.",
        ) from error


class ResumeFolder:
    """The part of an unfinished run folder that a later process goes on from.

    Every beginning of a round is a line of the file `begun`, so that rounds that were interrupted can be counted
    whatever became of the processes since: those that began, less those that were finished.
    """

    def __init__(self, unfinished: Path) -> None:
        self.path = unfinished / FOLDER
        self._retired = unfinished / RETIRED

    def create(self, inputs: str = "") -> None:
        """Make the folder of a run that begins with `inputs`: what its settings don't say of it."""
        self.path.mkdir(mode=0o700)
        (self.path / "inputs").write_text(inputs, encoding="utf-8")

    @property
    def inputs(self) -> str:
        return (self.path / "inputs").read_text(encoding="utf-8")

    def retire(self) -> None:
        """Note, at once, that nothing is left to go on with: the whole run is on disk."""
        self.path.rename(self._retired)
        make_durable(self._retired.parent)

    def remove(self) -> None:
        """Delete what was retired."""
        if self._retired.exists():
            shutil.rmtree(self._retired)

    def begin(self, round_number: int) -> None:
        """Note that this round begins, before anything of it is sent."""
        with (self.path / "begun").open("a") as file:
            file.write(f"{round_number}\n")
        make_durable(self.path / "begun")
        make_durable(self.path)

    @property
    def begun(self) -> int:
        """How often a round began."""
        try:
            return len((self.path / "begun").read_text().split())
        except FileNotFoundError:
            return 0

    def save(self, state: RunState) -> None:
        tensors = {WEIGHTS: state.weights}
        tensors |= {f"{SERVER}/{name}": value for name, value in state.server.items()}
        for client, kept in state.clients.items():
            tensors |= {f"{CLIENT}/{client}/{name}": value for name, value in kept.items()}
        new = self.path / "state.new"
        numbers = {name: str(getattr(state, name)) for name in NUMBERS}
        copies = {name: value.clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
        save_file(copies, new, metadata=numbers)  # which rejects tensors that share memory
        make_durable(new)
        new.replace(self.path / "state.safetensors")
        make_durable(self.path)

    def load(self) -> RunState | None:
        """The state after the last whole round; None before the first.

        Raises:
            OSError, ValueError, SafetensorError: It is not as it was saved.
        """
        path = self.path / "state.safetensors"
        if not path.exists():
            return None
        server: State = {}
        clients: dict[int, State] = {}
        weights = torch.empty(0)
        with safe_open(path, "pt") as file:
            numbers = file.metadata() or {}
            for name in file.keys():  # noqa: SIM118  (a safetensors file is no mapping)
                party, _, rest = name.partition("/")
                if party == WEIGHTS:
                    weights = file.get_tensor(name)
                elif party == SERVER:
                    server[rest] = file.get_tensor(name)
                else:
                    client, _, rest = rest.partition("/")
                    clients.setdefault(int(client), {})[rest] = file.get_tensor(name)
        if not numbers.keys() >= set(NUMBERS):
            raise ValueError(f"{path.name} doesn't tell its round")
        whole = {name: int(numbers[name]) for name in NUMBERS}
        broken = self.begun - whole["round"]
        return RunState(weights=weights, server=server, clients=clients, broken_rounds=broken, **whole)
