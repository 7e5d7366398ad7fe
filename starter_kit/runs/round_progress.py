"""What is saved of a round while it runs, where nothing is private, so that a killed run resumes inside it.

In the unfinished run folder, readable by the owner only and until the round is recorded:

    resume/round/client-3.safetensors    the reply of a client that has finished, and what it keeps from then on
    resume/round/training.pt             the local training that runs, after some of its steps

What a client computes follows from the round's model, its state and its own stream, so a round that is resumed ends as
if it had not been interrupted, to the bit. A private round is never resumed: it begins again, with new coins and new
noise, and where its messages may have been seen it counts as spent.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from evaluator.docvqa.weights import unpickle
from evaluator.errors import ProblemError
from starter_kit.federation.client_state import ClientState, LocalState, local_states
from starter_kit.federation.rounds import Engine, Reply, Request
from starter_kit.federation.state_bytes import pack_state, unpack_state
from starter_kit.reporting.files import fsync_path
from starter_kit.runs.opening import RunPaths, writing_run
from starter_kit.runs.resuming import FOLDER, reading_unfinished_run

ROUND, TRAINING = "round", "training.pt"
PAYLOAD, STATE = "payload", "state"


@dataclass(frozen=True)
class RoundProgress:
    """The folder of a round's progress in the run folder of `paths`.

    Attributes:
        every: Steps between two saves of a local training.
    """

    paths: RunPaths
    every: int

    @property
    def folder(self) -> Path:
        """The folder, which is there from the first save of a round until the round is recorded."""
        return self.paths.unfinished / FOLDER / ROUND

    def clear(self) -> None:
        """Delete the folder, of a round that was recorded."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, request: Request, reply: Reply, state: LocalState) -> None:
        """Store a client's reply to a request, and its state from then on."""
        path = self._file(f"client-{reply.client}.safetensors")
        tensors = {
            name: torch.frombuffer(bytearray(data), dtype=torch.uint8)
            for name, data in ((PAYLOAD, reply.payload), (STATE, pack_state(state)))
            if data
        }
        numbers = {
            "round": str(request.round),
            "sampled": str(reply.sampled),
            "loss": "" if reply.loss is None else reply.loss.hex(),
        }
        with writing_run(self.paths):
            new = path.with_suffix(".new")
            save_file(tensors, new, metadata=numbers)
            _put(new, path)

    def kept(self, request: Request) -> tuple[Reply, LocalState] | None:
        """Return the reply to a request, and the client's state after it, if an earlier process stored them."""
        path = self.folder / f"client-{request.client}.safetensors"
        if not path.is_file():
            return None
        with reading_unfinished_run(self.paths.unfinished), safe_open(path, "pt") as file:
            numbers = file.metadata()
            if int(numbers["round"]) != request.round:
                return None
            found = {name: file.get_tensor(name).numpy().tobytes() for name in file.keys()}  # noqa: SIM118
        loss = float.fromhex(numbers["loss"]) if numbers["loss"] else None
        reply = Reply(request.client, found.get(PAYLOAD, b""), int(numbers["sampled"]), loss)
        return reply, unpack_state(found.get(STATE, b""))

    def save(self, training: str, content: Mapping[str, Any]) -> None:
        """Replace what is saved of a local training: see `TrainingSaves`."""
        path = self._file(TRAINING)
        with writing_run(self.paths):
            new = path.with_suffix(".new")
            torch.save({"training": training, **content}, new)
            _put(new, path)

    def load(self, training: str) -> Mapping[str, Any] | None:
        """Return what was saved last, if it was of this local training."""
        path = self.folder / TRAINING
        if not path.is_file():
            return None
        with reading_unfinished_run(self.paths.unfinished):
            try:
                content = cast(dict[str, Any], unpickle(path))
            except ProblemError as error:
                raise ValueError(f"{path.name} is not as it was saved") from error
        return content if content["training"] == training else None

    def _file(self, name: str) -> Path:
        with writing_run(self.paths):
            self.folder.mkdir(mode=0o700, exist_ok=True)
        return self.folder / name


class ResumingEngine:
    """An engine of one machine whose clients' replies are stored as they arrive, and not asked for twice.

    Attributes:
        states, apart, unsent: See `Engine`.
    """

    apart = False

    def __init__(self, engine: Engine, progress: RoundProgress) -> None:
        self.unsent: list[int] = []
        self._engine = engine
        self._progress = progress

    @property
    def clients(self) -> Sequence[int]:
        """The ids of all clients."""
        return self._engine.clients

    @property
    def states(self) -> Mapping[int, ClientState]:
        """The state of each client from round to round."""
        return self._engine.states

    def restore(self, states: Mapping[int, ClientState]) -> None:
        """Give clients their earlier state back."""
        self._engine.restore(states)

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield the replies in the order of the requests: first those of clients that had finished."""
        missing = list(requests)
        while missing and (found := self._progress.kept(missing[0])):
            reply, state = found
            self._engine.restore({reply.client: state})
            missing.pop(0)
            yield reply
        by_client = {request.client: request for request in missing}
        for reply in self._engine.ask(missing) if missing else ():
            self._progress.keep(
                by_client[reply.client], reply, local_states(self._engine.states)[reply.client]
            )
            yield reply


def _put(new: Path, path: Path) -> None:
    """Give a file that was written its name, for good."""
    fsync_path(new)
    os.replace(new, path)
    fsync_path(path.parent)
