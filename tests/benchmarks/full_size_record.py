"""The files of a private run of 226 million trained parameters, without the training.

The base weights have the shapes of the full-size VT5; its language model and embeddings of places are trained. The
noised sums are noise of the declared size and nothing else. They are one long vector, rotated by another number of
blocks in every round: the checks compare the same blocks of all rounds, which are independent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.communication.log import LogEntry, write_log
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Poisson
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import SERVER, ArtifactKind, PrivacyRules, TrackRules
from evaluator.records.annex import Annex, Openings, write_annex
from evaluator.records.certificate import BLOCK, Floats, Opening, drawn_blocks, open_blocks, vector_root
from evaluator.records.lines import EndLine, RunLine, TrainableTensor
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter
from tests.benchmarks.test_intake import shapes, write_checkpoint
from tests.evaluator.records.factories import DATA_SHA256, round_line, run_line, write_trained

CLIENTS, PROVIDERS = 10, 415
SAMPLING, NOISE, CLIP_NORM = Poisson(provider_rate=0.1), Noise(multiplier=1.2), 0.5
CHALLENGE = "5" * 64
RULES = TrackRules(
    reference="vt5",
    test_set="none",
    clients=CLIENTS,
    providers_per_client=[PROVIDERS] * CLIENTS,
    data_sha256=DATA_SHA256,
    privacy=PrivacyRules(epsilon=8, delta=1e-5),
)


@dataclass(frozen=True)
class FullSizeRun:
    """The artifacts of the run, and its base weights, which are in a folder as a worker has them."""

    files: dict[ArtifactKind, Path]
    base: Path
    numel: int


def make_run(folder: Path, rounds: int) -> FullSizeRun:
    """Make the run of so many rounds in `folder`; takes 6 GB of memory, and 2.5 GB of disk."""
    base = folder / "model.safetensors"
    write_checkpoint(base)
    run = _run_line(base, rounds)
    vector = weight_vector(base, run.shapes)
    assert vector is not None
    weights = np.concatenate(list(vector.pieces()))
    run = run.model_copy(update={"weights_root": vector_root(weights)})
    files = {
        kind: folder / kind.value
        for kind in (
            ArtifactKind.CHECKPOINT,
            ArtifactKind.COMMUNICATION_LOG,
            ArtifactKind.TRAINING_RECORD,
            ArtifactKind.TRAINING_ANNEX,
        )
    }
    key = Ed25519PrivateKey.generate()
    with files[ArtifactKind.TRAINING_RECORD].open("wb") as file:
        writer = RecordWriter(file, run)
        annex = _write_rounds(writer, run, weights)
        write_annex(files[ArtifactKind.TRAINING_ANNEX], annex)
        write_trained(files[ArtifactKind.CHECKPOINT], run, base, weights, run.run_token)
        size_bytes = rounds * _round_bytes(run)
        end = EndLine(
            rounds=rounds,
            bytes_down=size_bytes,
            bytes_up=size_bytes,
            checkpoint_sha256=sha256_of(files[ArtifactKind.CHECKPOINT]),
            annex_body_sha256=annex.body_sha256,
            public_key=public_key_of(key),
        )
        writer.end(end, key)
    write_log(files[ArtifactKind.COMMUNICATION_LOG], _messages(run))
    return FullSizeRun(files, base, run.numel)


def _run_line(base: Path, rounds: int) -> RunLine:
    trained = [
        TrainableTensor(name=name, shape=shape) for name, shape in sorted(shapes()) if "visual" not in name
    ]
    return run_line(
        base_sha256=sha256_of(base),
        trainable=trained,
        clients=CLIENTS,
        sampling=SAMPLING,
        noise=NOISE,
        clip_norm=CLIP_NORM,
        normalizer=CLIENTS * PROVIDERS * SAMPLING.provider_rate,
        rounds=rounds,
    )


def _write_rounds(writer: RecordWriter, run: RunLine, weights: Floats) -> Annex:
    """Add the lines of all rounds to the record and their steps to `weights` (d,), and return the annex."""
    random = np.random.default_rng(7)
    noise = random.standard_normal(run.numel, np.float32) * np.float32(NOISE.multiplier * CLIP_NORM)
    drawn = drawn_blocks(CHALLENGE, run.rounds, run.numels)
    updates: Openings = {}
    after: Openings = {}
    for number in range(1, run.rounds + 1):
        total = np.roll(noise, 5003 * BLOCK * number)
        weights += np.float32(1 / run.normalizer) * total
        line = round_line(
            number,
            clients=CLIENTS,
            sampling=SAMPLING,
            noise_multiplier=NOISE.multiplier,
            clip_norm=CLIP_NORM,
            bytes_down=_round_bytes(run),
            bytes_up=_round_bytes(run),
            update_root=vector_root(total),
            weights_root=vector_root(weights),
        )
        writer.round(line)
        updates |= {(number, one.block): one for one in _opened(total, _blocks(drawn.updates, number))}
        after |= {(number, one.block): one for one in _opened(weights, _blocks(drawn.weights, number))}
    return Annex(
        run.run_token,
        CHALLENGE,
        dict.fromkeys(range(CLIENTS), PROVIDERS),
        DATA_SHA256,
        [
            dict(enumerate(random.binomial(PROVIDERS, SAMPLING.provider_rate, CLIENTS).tolist()))
            for _ in range(run.rounds)
        ],
        updates,
        after,
    )


def _blocks(places: Sequence[tuple[int, int]], number: int) -> list[int]:
    return [block for round_number, block in places if round_number == number]


def _opened(vector: Floats, blocks: Sequence[int]) -> Iterator[Opening]:
    """Yield copies of the blocks: a view would keep the whole vector, and move on with the weights."""
    for one in open_blocks(vector, blocks):
        yield replace(one, values=one.values.copy())


def _round_bytes(run: RunLine) -> int:
    return CLIENTS * run.numel * 4


def _messages(run: RunLine) -> Iterator[LogEntry]:
    for number in range(1, run.rounds + 1):
        for client in range(CLIENTS):
            yield LogEntry(number, SERVER, client, run.numel * 4)
            yield LogEntry(number, client, SERVER, run.numel * 4)
