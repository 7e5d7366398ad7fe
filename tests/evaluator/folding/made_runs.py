"""Runs with a transcript, trained by nobody: random updates of a matrix and of a pair of adapters."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from evaluator.communication.codecs import CODECS, packed_model
from evaluator.communication.log import LogEntry, write_log
from evaluator.folding.folding import Floats, start_vector, state_sha256
from evaluator.folding.lines import (
    BuiltIn,
    TranscriptEnd,
    TranscriptMessage,
    TranscriptRound,
    TranscriptRun,
    messages_root,
)
from evaluator.folding.server_step import stepped
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import SERVER, ArtifactKind, TrackRules
from evaluator.records.canonical_lines import canonical, values_of
from evaluator.records.lines import RecordLine, TrainableTensor
from evaluator.records.server_steps import ServerStep, SumStep

CLIENTS, SCALE = 4, 2.0
ADAPTED = "layer.weight"
TRAINABLE = [
    TrainableTensor(name="layer.lora_A.weight", shape=[2, 12]),
    TrainableTensor(name="layer.lora_B.weight", shape=[16, 2]),
    TrainableTensor(name="w", shape=[40, 30]),
]
RULES = TrackRules(reference="r", test_set="t", clients=CLIENTS)


@dataclass(frozen=True)
class Sent:
    """A message of a round."""

    sender: int
    receiver: int
    payload: bytes = field(repr=False)


@dataclass(frozen=True)
class MadeRun:
    """A run: what a team would submit, before it is written.

    Attributes:
        weights: The model (d,) that the honest server ended with.
        vectors: The server's vectors before each round, which drawn rounds begin from.
        claimed: The hashes of the states after each round; by default those that follow from the messages.
    """

    base: Path
    line: TranscriptRun
    rounds: list[list[Sent]]
    weights: Floats
    vectors: list[list[Floats]] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)

    def with_rounds(self, *rounds: list[Sent]) -> "MadeRun":
        """Return the run with other messages, and the honest run's checkpoint."""
        return replace(self, rounds=list(rounds))

    def write(self, folder: Path) -> dict[ArtifactKind, Path]:
        """Write what is submitted; every hash is that of what is written, as a careful cheat would have it."""
        folder.mkdir(parents=True)
        files = {
            ArtifactKind.CHECKPOINT: folder / "model.safetensors",
            ArtifactKind.COMMUNICATION_LOG: folder / "log.csv",
            ArtifactKind.TRANSCRIPT: folder / "transcript.jsonl",
            ArtifactKind.MESSAGES: folder / "messages.bin",
        }
        write_checkpoint(self.base / "model.safetensors", files[ArtifactKind.CHECKPOINT], self.weights)
        entries = [
            LogEntry(number, sent.sender, sent.receiver, len(sent.payload))
            for number, round_ in enumerate(self.rounds, start=1)
            for sent in round_
        ]
        write_log(files[ArtifactKind.COMMUNICATION_LOG], entries)
        contents = {hashed(sent.payload): sent.payload for round_ in self.rounds for sent in round_}
        files[ArtifactKind.MESSAGES].write_bytes(b"".join(contents.values()))
        write_lines(files[ArtifactKind.TRANSCRIPT], self.lines(files[ArtifactKind.CHECKPOINT]))
        return files

    def write_opened(self, files: dict[ArtifactKind, Path], numbers: list[int]) -> None:
        """Write the file of messages of these rounds, as of a run whose other messages nobody attaches."""
        states = [vector for number in numbers if number > 1 for vector in self.vectors[number - 1]]
        contents = {
            hashed(sent.payload): sent.payload for number in numbers for sent in self.rounds[number - 1]
        }
        files[ArtifactKind.MESSAGES].write_bytes(
            b"".join([*(state.tobytes() for state in states), *contents.values()])
        )

    def lines(self, checkpoint: Path) -> list[RecordLine]:
        """Return the lines of the index."""
        messages = [
            [
                TranscriptMessage(
                    sender=sent.sender,
                    receiver=sent.receiver,
                    size_bytes=len(sent.payload),
                    sha256=hashed(sent.payload),
                )
                for sent in round_
            ]
            for round_ in self.rounds
        ]
        states = self.claimed or states_of(self.line, self.base, self.rounds)
        rounds = [
            TranscriptRound(round=number, messages=of_round, state_sha256=state)
            for number, (of_round, state) in enumerate(zip(messages, states, strict=True), start=1)
        ]
        end = TranscriptEnd(
            rounds=len(rounds),
            messages_root=messages_root([message.leaf for of_round in messages for message in of_round]),
            checkpoint_sha256=sha256_of(checkpoint),
        )
        return [self.line, *rounds, end]


def make_base(folder: Path) -> Path:
    """Write base weights of a matrix that is trained, one that gets adapters, and one that stays."""
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(7)
    shapes = {"w": (40, 30), ADAPTED: (16, 12), "frozen": (5, 5)}
    save_file(
        {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()},
        folder / "model.safetensors",
    )
    return folder


def make_run(
    base: Path,
    codec: str = "float32",
    server: ServerStep | None = None,
    rounds: int = 3,
    chosen: int = 2,
    smuggled_after: int = 0,
) -> MadeRun:
    """Return a run in which `chosen` clients take part in each round; honest, unless a model appears after a round."""
    weights_file = base / "model.safetensors"
    line = TranscriptRun.model_validate(
        {
            "base_sha256": sha256_of(weights_file),
            "clients": CLIENTS,
            "codec": BuiltIn.model_validate({"name": codec}),
            "lora_scale": SCALE,
            "server": server or SumStep(learning_rate=1.0),
            "start": "seed 1",
            "trainable": TRAINABLE,
        }
    )
    packing, start = CODECS[codec], start_vector(line, weights_file)
    weights, state = start.copy(), dict[str, Floats]()
    random, made = np.random.default_rng(3), []
    vectors, claimed = [], []
    for number in range(rounds):
        vectors.append([weights, *(state[name] for name in sorted(state))])
        clients = [(number + client) % CLIENTS for client in range(chosen)]
        model = packed_model(packing, weights, start)
        updates = [packing.encode(random.standard_normal(len(start), dtype=np.float32)) for _ in clients]
        made.append(
            [
                *(Sent(SERVER, client, model) for client in clients),
                *(Sent(client, SERVER, update) for client, update in zip(clients, updates, strict=True)),
            ]
        )
        total = np.zeros_like(start)
        for update in updates:
            total += packing.decode(update, len(start))
        weights = stepped(line.server, weights, total / np.float32(len(clients)), state)
        if number + 1 == smuggled_after:
            weights = weights + random.standard_normal(len(start), dtype=np.float32)
        claimed.append(state_sha256(weights, state))
    return MadeRun(base, line, made, weights, vectors, claimed if smuggled_after else [])


def states_of(line: TranscriptRun, base: Path, rounds: list[list[Sent]]) -> list[str]:
    """Return the hash after each round, of whatever can be decoded of its messages."""
    assert isinstance(line.codec, BuiltIn)
    codec, hashes = CODECS[line.codec.name], []
    try:
        weights = start_vector(line, base / "model.safetensors")
    except Exception:  # noqa: BLE001 - a cheat of the first line: no hash would be right
        return ["0" * 64] * len(rounds)
    state: dict[str, Floats] = {}
    for round_ in rounds:
        total, count = np.zeros_like(weights), 0
        for sent in round_:
            if sent.sender != SERVER:
                count += 1
                try:
                    total += codec.decode(sent.payload, len(weights))
                except ValueError:
                    continue
        try:
            weights = stepped(line.server, weights, total / np.float32(max(1, count)), state)
        except ValueError:
            return ["0" * 64] * len(rounds)
        hashes.append(state_sha256(weights, state))
    return hashes


def write_checkpoint(base: Path, path: Path, weights: Floats) -> None:
    """Write the model (d,) as a checkpoint, with adapters merged."""
    down, up, w = np.split(weights, [24, 56])
    tensors = load_file(base)
    tensors["w"] = torch.from_numpy(w.reshape(40, 30).copy())
    merged = torch.from_numpy(up.reshape(16, 2).copy()) @ torch.from_numpy(down.reshape(2, 12).copy())
    tensors[ADAPTED] = tensors[ADAPTED] + SCALE * merged
    save_file(tensors, path)


def write_lines(path: Path, lines: list[RecordLine]) -> None:
    """Write an index."""
    path.write_bytes(b"".join(canonical(values_of(line)) + b"\n" for line in lines))


def hashed(payload: bytes) -> str:
    """Return the SHA-256 of a message."""
    return hashlib.sha256(payload).hexdigest()
