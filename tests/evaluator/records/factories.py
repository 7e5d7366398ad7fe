"""Training records for tests: a run's files, consistent with each other, from small tensors and seeded noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray
from safetensors.numpy import save_file

from evaluator.checkpoints.contents import sha256_of
from evaluator.checkpoints.weight_changes import weight_vector_sha256
from evaluator.communication.log import LogEntry, write_log
from evaluator.contracts import SERVER, ArtifactKind
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Binomial, Exactly, Poisson
from evaluator.records.annex import Annex, write_annex
from evaluator.records.certificate import drawn_openings, open_blocks, update_root
from evaluator.records.lines import (
    Codec,
    EndLine,
    RoundLine,
    RunLine,
    ServerStep,
    TrainableTensor,
    Tuning,
)
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter

RUN_TOKEN = "token-for-one-run-only"
TRAINABLE = [TrainableTensor(name="encoder.weight", shape=[60, 40]), TrainableTensor(name="bias", shape=[9])]

Sums = Callable[
    [RunLine, RoundLine, int], NDArray[np.float32]
]  # of a round in which so many providers took part


@dataclass(frozen=True)
class MadeRun:
    """The files of a run, and the key that signed its record."""

    record: Path
    annex: Path
    log: Path
    checkpoint: Path
    base: Path
    key: Ed25519PrivateKey

    @property
    def files(self) -> dict[ArtifactKind, Path]:
        return {
            ArtifactKind.CHECKPOINT: self.checkpoint,
            ArtifactKind.COMMUNICATION_LOG: self.log,
            ArtifactKind.TRAINING_RECORD: self.record,
            ArtifactKind.TRAINING_ANNEX: self.annex,
        }


def run_line(**changes: Any) -> RunLine:
    values: dict[str, Any] = {
        "run_token": RUN_TOKEN,
        "kit_version": "0.1.0",
        "code_sha256": "c" * 64,
        "track": "track-2",
        "method": "fl-provider-dp",
        "delta": 1e-5,
        "clients": 2,
        "sampling": Poisson(provider_rate=0.25),
        "clip_norm": 0.5,
        "noise": Noise(multiplier=1.1),
        "normalizer": 10.0,
        "server": ServerStep(rule="sum", learning_rate=1.0),
        "codec": Codec(name="none", bits_per_parameter=32.0),
        "rounds": 2,
        "base_sha256": "b" * 64,
        "trainable": TRAINABLE,
        "tuning": Tuning(private_runs=0),
        "validation_on_private_data": False,
        "claimed_epsilon": 8.0,
    }
    return RunLine(**values | changes)


def round_line(number: int, **changes: Any) -> RoundLine:
    values: dict[str, Any] = {
        "round": number,
        "clients": 2,
        "sampling": Poisson(provider_rate=0.25),
        "clip_norm": 0.5,
        "noise_multiplier": 1.1,
        "bytes_down": 0,
        "bytes_up": 0,
        "model_in_sha256": "0" * 64,
        "model_out_sha256": "0" * 64,
        "update_root": "0" * 64,
    }
    return RoundLine(**values | changes)


def write_weights(path: Path, *, seed: int = 0, tensors: list[TrainableTensor] = TRAINABLE) -> Path:
    """A checkpoint of `tensors` and one that is never trained."""
    random = np.random.default_rng(seed)
    weights = {tensor.name: random.standard_normal(tensor.shape).astype(np.float32) for tensor in tensors}
    save_file(weights | {"frozen": np.ones((3, 3), np.float32)}, path)
    return path


def noise_only(run: RunLine, line: RoundLine, providers: int) -> NDArray[np.float32]:
    """What a round releases whose updates are all zero."""
    draws = {"server": 1, "client_full": line.clients, "client_share": min(line.clients, 1)}[
        run.noise.placement
    ]
    std = line.noise_multiplier * line.clip_norm * math.sqrt(draws)
    random = np.random.default_rng([line.round, run.rounds])
    return (std * random.standard_normal(run.numel)).astype(np.float32)


def make_record(
    folder: Path,
    *,
    base: Path | None = None,
    checkpoint: Path | None = None,
    key: Ed25519PrivateKey | None = None,
    providers: int = 20,
    sums: Sums = noise_only,
    change_round: Callable[[RoundLine], RoundLine] = lambda line: line,
    change_annex: Callable[[Annex], Annex] = lambda annex: annex,
    end: dict[str, Any] | None = None,
    **run: Any,
) -> MadeRun:
    """A consistent run in `folder`, made where it is missing.

    Args:
        base: Base weights, which hold the trainable tensors; else small ones are written.
        checkpoint: Likewise.
        providers: Of each client.
        sums: Makes the noised sum of each round.
        change_round: Applied to every round line before it is hashed and signed.
        change_annex: Applied to the annex before the record names its hash.
        end: Changes to the end line.
        run: Changes to the run line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    base = base or write_weights(folder / "base.safetensors", seed=1)
    checkpoint = checkpoint or write_weights(folder / "model.safetensors", seed=2)
    made = MadeRun(
        record=folder / "training_record.jsonl",
        annex=folder / "training_annex.jsonl",
        log=folder / "communication_log.csv",
        checkpoint=checkpoint,
        base=base,
        key=key or Ed25519PrivateKey.generate(),
    )
    plan = run_line(**{"base_sha256": sha256_of(base)} | run)
    random = np.random.default_rng(plan.rounds)
    participants = [_participants(plan, random) for _ in range(plan.rounds)]
    sampled = [{client: _sampled(plan, providers, random) for client in clients} for clients in participants]
    lines, totals = [], []
    for number, counts in enumerate(sampled, 1):
        line = change_round(_round(plan, number, len(counts), made))
        total = sums(plan, line, sum(counts.values()))
        totals.append(total)
        lines.append(line.model_copy(update={"update_root": update_root(total)}))
    with made.record.open("wb") as file:
        writer = RecordWriter(file, plan)
        for line in lines:
            writer.round(line)
        openings = {
            (number, block): open_blocks(totals[number - 1], [block])[0]
            for number, block in drawn_openings(writer.challenge, plan.rounds, plan.numel)
        }
        annex = Annex(plan.run_token, dict.fromkeys(range(plan.clients), providers), sampled, openings)
        write_annex(made.annex, change_annex(annex))
        values: dict[str, Any] = {
            "rounds": len(lines),
            "bytes_down": sum(line.bytes_down for line in lines),
            "bytes_up": sum(line.bytes_up for line in lines),
            "checkpoint_sha256": sha256_of(checkpoint),
            "annex_sha256": sha256_of(made.annex),
            "public_key": public_key_of(made.key),
        }
        writer.end(EndLine(**values | (end or {})), made.key)
    message = plan.numel * 4
    write_log(
        made.log,
        [
            LogEntry(number, sender, receiver, message)
            for number, clients in enumerate(participants, 1)
            for client in clients
            for sender, receiver in ((SERVER, client), (client, SERVER))
        ],
    )
    return made


def _participants(run: RunLine, random: np.random.Generator) -> list[int]:
    match run.sampling.clients(run.clients):
        case Binomial(rate=rate):
            return [client for client in range(run.clients) if random.random() < rate]
        case Exactly(count):
            return sorted(map(int, random.choice(run.clients, count, replace=False)))


def _sampled(run: RunLine, providers: int, random: np.random.Generator) -> int:
    match run.sampling.providers(providers):
        case Binomial(rate=rate):
            return int(random.binomial(providers, rate))
        case Exactly(count):
            return count


def _round(run: RunLine, number: int, clients: int, made: MadeRun) -> RoundLine:
    first = weight_vector_sha256(made.base, run.shapes) or "a" * 64
    last = weight_vector_sha256(made.checkpoint, run.shapes) or "a" * 64
    between = [first, *(f"{index:064x}" for index in range(1, run.rounds)), last]
    size_bytes = clients * run.numel * 4
    return round_line(
        number,
        clients=clients,
        sampling=run.sampling,
        clip_norm=run.clip_norm,
        noise_multiplier=run.noise.multiplier,
        bytes_down=size_bytes,
        bytes_up=size_bytes,
        model_in_sha256=between[number - 1],
        model_out_sha256=between[number],
    )
