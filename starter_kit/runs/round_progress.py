"""What is saved of a round while it runs, where nothing is private, so that a killed run resumes inside it.

In the unfinished run folder, readable by the owner only and until the round is recorded:

    resume/round/client-3.pt     the reply of a client that has finished, and what it keeps from then on
    resume/round/training.pt     the local training that runs, after some of its steps

What a client computes follows from the round's model, its state and its own stream, so a round that is resumed ends as
if it had not been interrupted, on a CPU to the bit. A private round is never resumed: it begins again, with new coins
and new noise, and where its messages may have been seen it counts as spent.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from evaluator.docvqa.weights import unpickle
from evaluator.errors import ProblemError
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.local_engine import MachineEngine
from starter_kit.federation.rounds import Reply, Request
from starter_kit.reporting.files import replacing
from starter_kit.runs.opening import RunPaths, writing_run
from starter_kit.runs.resuming import FOLDER, reading_unfinished_run

ROUND, TRAINING = "round", "training.pt"


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
        payload = torch.tensor([], dtype=torch.uint8)
        if reply.payload:
            payload = torch.frombuffer(bytearray(reply.payload), dtype=torch.uint8)
        content = {
            "round": request.round,
            "payload": payload,
            "sampled": reply.sampled,
            "loss": reply.loss,
            "state": state.tensors,
        }
        self._write(_client_file(reply.client), content)

    def kept(self, request: Request) -> tuple[Reply, LocalState] | None:
        """Return the reply to a request, and the client's state after it, if an earlier process stored them."""
        found = self._read(_client_file(request.client))
        if found is None or found["round"] != request.round:
            return None
        payload = found["payload"].numpy().tobytes()
        return Reply(request.client, payload, found["sampled"], found["loss"]), LocalState(found["state"])

    def save(self, training: str, content: Mapping[str, Any]) -> None:
        """Replace what is saved of a local training: see `TrainingSaves`."""
        self._write(TRAINING, {"training": training, **content})

    def load(self, training: str) -> Mapping[str, Any] | None:
        """Return what was saved last, if it was of this local training."""
        found = self._read(TRAINING)
        return found if found and found["training"] == training else None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        with writing_run(self.paths):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with replacing(self.folder / name) as new:
                torch.save(dict(content), new)

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        if not path.is_file():
            return None
        with reading_unfinished_run(self.paths.unfinished):
            try:
                return cast(dict[str, Any], unpickle(path))
            except ProblemError as error:
                raise ValueError(f"{path.name} is not as it was saved") from error


def _client_file(client: int) -> str:
    return f"client-{client}.pt"


class ResumingEngine(MachineEngine):
    """An engine of one machine whose clients' replies are stored as they arrive, and not asked for twice."""

    def __init__(self, engine: MachineEngine, progress: RoundProgress) -> None:
        super().__init__(engine.clients)
        self.states = engine.states
        self._engine = engine
        self._progress = progress

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield the replies in the order of the requests: first those of clients that had finished."""
        missing = list(requests)
        while missing and (found := self._progress.kept(missing[0])):
            reply, state = found
            self.states[reply.client] = state
            missing.pop(0)
            yield reply
        by_client = {request.client: request for request in missing}
        for reply in self._engine.ask(missing) if missing else ():
            self._progress.keep(by_client[reply.client], reply, self.states[reply.client])
            yield reply
