"""Training records for tests: a run's files, consistent with each other, from small tensors and seeded noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.communication.log import LogEntry, write_log
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Binomial, Exactly, OncePerCycle, Poisson
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import SERVER, ArtifactKind
from evaluator.records.annex import AdapterValues, Annex, Openings, write_annex
from evaluator.records.certificate import Floats, drawn_blocks, open_blocks, vector_root
from evaluator.records.lines import (
    Codec,
    EndLine,
    RoundLine,
    RunLine,
    TrainableTensor,
    Tuning,
)
from evaluator.records.merging import first_parts
from evaluator.records.server_steps import SumStep
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter

RUN_TOKEN = "token-for-one-run-only"
DATA_SHA256 = "d" * 64
TRAINABLE = [TrainableTensor(name="bias", shape=[9]), TrainableTensor(name="encoder.weight", shape=[60, 40])]

Sums = Callable[
    [RunLine, RoundLine, int], NDArray[np.float32]
]  # of a round in which so many providers took part
AllSums = Callable[[RunLine, Sequence[RoundLine], Sequence[int]], Sequence[Floats]]
# The weights after every round, from w₀ and the noised sums.
Follow = Callable[[RunLine, Floats, Sequence[Floats]], list[Floats]]


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
        "server": SumStep(learning_rate=1.0),
        "codec": Codec(name="none", bits_per_parameter=32.0),
        "rounds": 2,
        "base_sha256": "b" * 64,
        "trainable": TRAINABLE,
        "lora_scale": None,
        "weights_root": "0" * 64,
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
        "update_root": "0" * 64,
        "weights_root": "0" * 64,
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
    # Without noise, zeros without a sign.
    return (std * random.standard_normal(run.numel)).astype(np.float32) + np.float32(0)


def by_the_sum(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """What an honest server makes of the sums by the rule `sum`, in float32."""
    assert isinstance(run.server, SumStep)
    factor, weights = np.float32(run.server.learning_rate / run.normalizer), [start]
    for number, total in enumerate(totals, 1):
        moved = run.turns.moved(number) if run.turns else True
        weights.append(np.where(moved, weights[-1] + factor * total, weights[-1]))
    return weights[1:]


def by_the_rule(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """The weights after every round by the declared rule, as an honest server computes them."""
    if run.server.rule == "sum":
        return by_the_sum(run, start, totals)
    if run.server.rule != "adam":
        return [start] * len(totals)
    rule, weights, after = run.server, start.astype(np.float64), []
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for number, total in enumerate(totals, 1):
        gradient = total.astype(np.float64) / run.normalizer
        mean = rule.beta_1 * mean + (1 - rule.beta_1) * gradient
        square = rule.beta_2 * square + (1 - rule.beta_2) * gradient**2
        step = mean / (1 - rule.beta_1**number) / (np.sqrt(square / (1 - rule.beta_2**number)) + rule.epsilon)
        weights = (weights + rule.learning_rate * step).astype(np.float32).astype(np.float64)
        after.append(weights.astype(np.float32))
    return after


def as_it_is(weights: Floats) -> Floats:
    return weights


def make_record(
    folder: Path,
    *,
    base: Path | None = None,
    checkpoint: Path | None = None,
    key: Ed25519PrivateKey | None = None,
    providers: int = 20,
    sums: Sums = noise_only,
    all_sums: AllSums | None = None,
    follow: Follow = by_the_sum,
    finish: Callable[[Floats], Floats] = as_it_is,
    change_round: Callable[[RoundLine], RoundLine] = lambda line: line,
    change_annex: Callable[[Annex], Annex] = lambda annex: annex,
    end: dict[str, Any] | None = None,
    challenge: str = "",
    adapters_token: str | None = None,
    **run: Any,
) -> MadeRun:
    """A consistent run in `folder`, made where it is missing.

    Args:
        base: Base weights, which hold the trainable tensors; else small ones are written.
        checkpoint: Likewise; one to which the sums don't lead. Else it is what the sums lead to.
        providers: Of each client.
        sums: Makes the noised sum of each round.
        all_sums: Makes those of all rounds at once, in place of `sums`.
        follow: Makes the weights of all rounds from the sums.
        finish: Applied to the weights after the last round, before they are committed to and written.
        change_round: Applied to every round line before it is hashed and signed.
        change_annex: Applied to the annex before the record names its hash.
        end: Changes to the end line.
        challenge: What the annex answers; the record's own if it is empty, as in a dry run.
        adapters_token: What adapters start from; the run's own token if it is None.
        run: Changes to the run line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    base = base or write_weights(folder / "base.safetensors", seed=1)
    plan = run_line(**{"base_sha256": sha256_of(base)} | run)
    token = plan.run_token if adapters_token is None else adapters_token
    start = _start(plan, base, token)
    plan = plan.model_copy(update={"weights_root": vector_root(start)})
    random = np.random.default_rng(plan.rounds)
    participants = [_participants(plan, random) for _ in range(plan.rounds)]
    sampled = [
        {client: _sampled(plan, providers, random, client, number) for client in clients}
        for number, clients in enumerate(participants, 1)
    ]
    lines = [change_round(_round(plan, number, len(counts))) for number, counts in enumerate(sampled, 1)]
    counted = [sum(counts.values()) for counts in sampled]
    totals = (
        all_sums(plan, lines, counted)
        if all_sums
        else [sums(plan, line, count) for line, count in zip(lines, counted, strict=True)]
    )
    weights = follow(plan, start, totals)
    if checkpoint is not None:
        there = weight_vector(checkpoint, plan.shapes)
        weights[-1:] = [weights[-1] if there is None else there.read(0, plan.numel)] if weights else []
    elif weights:
        weights[-1] = finish(weights[-1])
    last = weights[-1] if weights else start
    made = MadeRun(
        record=folder / "training_record.jsonl",
        annex=folder / "training_annex.jsonl",
        log=folder / "communication_log.csv",
        checkpoint=checkpoint or write_trained(folder / "model.safetensors", plan, base, last, token),
        base=base,
        key=key or Ed25519PrivateKey.generate(),
    )
    with made.record.open("wb") as file:
        writer = RecordWriter(file, plan)
        for line, total, vector in zip(lines, totals, weights, strict=True):
            roots = {"update_root": vector_root(total), "weights_root": vector_root(vector)}
            writer.round(line.model_copy(update=roots))
        challenge = challenge or writer.own_challenge
        drawn = drawn_blocks(challenge, plan.rounds, plan.numels)
        annex = Annex(
            plan.run_token,
            challenge,
            dict.fromkeys(range(plan.clients), providers),
            DATA_SHA256,
            sampled,
            openings=_openings(totals, drawn.updates),
            weights=_openings(weights, drawn.weights),
            adapters=AdapterValues(adapters_of(plan, start), adapters_of(plan, last)),
        )
        annex = change_annex(annex)
        write_annex(made.annex, annex)
        values: dict[str, Any] = {
            "rounds": len(lines),
            "bytes_down": sum(line.bytes_down for line in lines),
            "bytes_up": sum(line.bytes_up for line in lines),
            "checkpoint_sha256": sha256_of(made.checkpoint),
            "annex_body_sha256": annex.body_sha256,
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


def write_trained(path: Path, run: RunLine, base: Path, weights: Floats, token: str | None) -> Path:
    """The base weights with `weights` (d,) in the trained tensors, and adapters, which start from `token`, merged."""
    tensors, trained = load_file(base), _tensors(run, weights)
    for adapter in run.adapters:
        first = first_parts(adapter, token or "", base)
        last = {letter: trained[tensor.name] for letter, tensor in adapter.tensors.items()}
        down, up = adapter.parametrization.factors({**(first or {}), **last})
        tensors[adapter.target] = tensors[adapter.target] + np.float32(run.lora_scale or 0) * (up @ down)
    tensors |= {
        name: value
        for name, value in trained.items()
        if name in tensors and tensors[name].shape == value.shape
    }
    save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, path)
    return path


def adapters_of(run: RunLine, weights: Floats) -> Floats:
    """The coordinates of all adapters in `weights` (d,)."""
    names = {tensor.name for adapter in run.adapters for tensor in adapter.tensors.values()}
    parts = [value.reshape(-1) for name, value in _tensors(run, weights).items() if name in names]
    return np.concatenate([np.empty(0, np.float32), *parts])


def _tensors(run: RunLine, weights: Floats) -> dict[str, NDArray[np.float32]]:
    parts = np.split(weights, np.cumsum([tensor.numel for tensor in run.trainable])[:-1])
    return {
        tensor.name: part.reshape(tensor.shape) for tensor, part in zip(run.trainable, parts, strict=True)
    }


def _start(run: RunLine, base: Path, token: str | None) -> Floats:
    """The base weights' trainable tensors; in adapters what follows from the token, and zeros in what is nowhere."""
    beside: dict[str, Floats] = {
        tensor.name: np.zeros(tensor.numel, np.float32) for tensor in run.trainable if tensor.numel
    }
    for adapter in run.adapters:
        first = first_parts(adapter, token or "", base) or {}
        beside |= {tensor.name: first[letter].reshape(-1) for letter, tensor in adapter.tensors.items()}
    for name in load_file(base):
        beside.pop(name, None)
    vector = weight_vector(base, run.shapes, beside)
    return np.zeros(run.numel, np.float32) if vector is None else vector.read(0, run.numel)


def _openings(vectors: Sequence[Floats], drawn: Sequence[tuple[int, int]]) -> Openings:
    blocks: dict[int, list[int]] = {}
    for number, block in drawn:
        blocks.setdefault(number, []).append(block)
    return {
        (number, opening.block): opening
        for number, indexes in blocks.items()
        for opening in open_blocks(vectors[number - 1], indexes)
    }


def _participants(run: RunLine, random: np.random.Generator) -> list[int]:
    match run.sampling.clients(run.clients):
        case Binomial(rate=rate):
            return [client for client in range(run.clients) if random.random() < rate]
        case Exactly(count):
            return sorted(map(int, random.choice(run.clients, count, replace=False)))
        case law:
            raise NotImplementedError(f"clients drawn by {law}")


def _sampled(run: RunLine, providers: int, random: np.random.Generator, client: int, number: int) -> int:
    match run.sampling.providers(providers):
        case Binomial(rate=rate):
            return int(random.binomial(providers, rate))
        case Exactly(count):
            return count
        case OncePerCycle(rounds=rounds) as law:
            cycle, place = law.place(number)
            counts = np.random.default_rng([client, cycle]).multinomial(providers, [1 / rounds] * rounds)
            return int(counts[place])


def _round(run: RunLine, number: int, clients: int) -> RoundLine:
    size_bytes = clients * run.numel * 4
    return round_line(
        number,
        clients=clients,
        sampling=run.sampling,
        clip_norm=run.clip_norm,
        noise_multiplier=run.noise.multiplier,
        bytes_down=size_bytes,
        bytes_up=size_bytes,
    )
