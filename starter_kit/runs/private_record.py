"""The training record of a private run, written during training, and its annex, written at the end.

The record is public: it names no provider and shows neither how many took part nor how long that took. How many of each
client's providers took part goes into the annex, which is for the organizers. The annex that is written at the end is
for a dry run: it shows the blocks that the record's own hash determines. When the record is uploaded the site draws
others, for which the vectors stay on disk (`vectors`) and the annex is made again (`answering`).
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import TypeAdapter
from torch import Tensor

from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind
from evaluator.records.annex import AdapterValues, Annex, write_annex
from evaluator.records.certificate import Floats, drawn_blocks, vector_root
from evaluator.records.lines import AnyLine, EndLine, ResumeLine, RoundLine, RunLine
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter
from starter_kit.federation.rounds import Round
from starter_kit.reporting.files import fsync_path, replacing
from starter_kit.runs.folder import FILES
from starter_kit.runs.resuming import TrainingState, reading_unfinished_run
from starter_kit.runs.vectors import UPDATE, WEIGHTS, VectorFolder

# Private; one line per round, converted into the annex at the end.
SAMPLED = "sampled.jsonl"

_LINE: TypeAdapter[RunLine | RoundLine | ResumeLine | EndLine] = TypeAdapter(AnyLine)


@dataclass(frozen=True)
class TrainingData:
    """What a run trains on, as its annex states it.

    Attributes:
        providers: How many providers each client has.
        sha256: The hash of the data manifest.
    """

    providers: Mapping[int, int]
    sha256: str


@dataclass(frozen=True)
class RecordedRounds:
    """The record of a run so far.

    Attributes:
        run: The record's first line.
        lines: The lines of its rounds and of its interruptions, in their order.
        sampled: For each round, how many providers of each client took part. Private.
    """

    run: RunLine
    lines: Sequence[RoundLine | ResumeLine] = ()
    sampled: Sequence[Mapping[int, int]] = ()

    def resumed(self, state: TrainingState, claimed_epsilon: float) -> "RecordedRounds":
        """Return the record with a line for every interruption not recorded yet; at least one, for this resumption."""
        recorded = sum(isinstance(line, ResumeLine) and line.begun for line in self.lines)
        unrecorded = state.interrupted_rounds - recorded
        added = [
            ResumeLine(round=state.round + 1, begun=begun, claimed_epsilon=claimed_epsilon)
            for begun in [True] * unrecorded or [False]
        ]
        return replace(self, lines=[*self.lines, *added])


def recover_record(folder: Path, rounds: int) -> RecordedRounds:
    """Read what an interrupted run has recorded of its first `rounds` rounds, without writing anything.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The folder lacks something of these rounds.
    """
    with reading_unfinished_run(folder):
        whole = _whole_lines(folder / FILES[ArtifactKind.TRAINING_RECORD])
        if not whole or not isinstance(run := whole[0], RunLine):
            raise ValueError("the training record doesn't begin with a line of type run")
        lines = [
            line
            for line in whole[1:]
            if (isinstance(line, RoundLine) and line.round <= rounds)
            or (isinstance(line, ResumeLine) and line.round <= rounds + 1)
        ]
        if [line.round for line in lines if isinstance(line, RoundLine)] != list(range(1, rounds + 1)):
            raise ValueError(f"the training record lacks some of the first {rounds} rounds")
        return RecordedRounds(run, lines, _sampled_counts(VectorFolder.of(folder, run.numel), rounds))


def remove_private_files(folder: Path) -> None:
    """Delete what a complete run has no use for: the counts, which the annex has, and vectors that it can't submit."""
    vectors = VectorFolder.of(folder, 0)
    (vectors.path / SAMPLED).unlink(missing_ok=True)
    record = folder / FILES[ArtifactKind.TRAINING_RECORD]
    run = _run_line(record) if record.is_file() else None
    if run and run.run_token is None and run.round_keys_root is None:
        vectors.remove()


class PrivateRecordWriter:
    """Appends rounds to a run's record, and writes its end and its annex.

    Args:
        folder: The folder of the unfinished run.
        recorded: The record so far, which replaces the one in the folder. Of a run that is resumed, earlier rounds stay
            in it, and its first line with the run token.
        key: Signs the last line.
        data: What the run trains on.
        start: w₀ (d,), the weights before the first round.

    Raises:
        OSError: The record can't be written.
    """

    def __init__(
        self,
        folder: Path,
        recorded: RecordedRounds,
        key: Ed25519PrivateKey,
        data: TrainingData,
        start: Tensor,
    ) -> None:
        self._key = key
        self._start: Floats = start.numpy()
        self._data = data
        self._run = recorded.run
        self._rounds = [line for line in recorded.lines if isinstance(line, RoundLine)]
        self._sampled = list(recorded.sampled)
        self._annex = folder / FILES[ArtifactKind.TRAINING_ANNEX]
        self._vectors = VectorFolder.of(folder, recorded.run.numel)
        self._vectors.create(exist_ok=bool(recorded.lines))
        if self._run.round_keys_root is not None:
            # An opening of the first round shows the weights before it, too.
            self._vectors.store_start(start)
        self._file, self._record = _write_lines(folder / FILES[ArtifactKind.TRAINING_RECORD], recorded)
        with replacing(self._vectors.path / SAMPLED) as new:
            new.write_text("".join(map(_counts_line, recorded.sampled)), encoding="utf-8")

    @property
    def run_token(self) -> str | None:
        """The run token of the record, which stays the same when a run is resumed."""
        return self._run.run_token

    def round(self, finished: Round) -> None:
        """Record a finished round: first its vectors, last its line."""
        self._vectors.store(finished.number, finished.aggregate.total, finished.weights)
        line = self._round_line(finished)
        self._record.round(line)
        self._rounds.append(line)
        self._sampled.append(finished.sampled)
        with (self._vectors.path / SAMPLED).open("a", encoding="utf-8") as file:
            file.write(_counts_line(finished.sampled))
        fsync_path(self._vectors.path / SAMPLED)
        _flush(self._file)

    def finish(self, checkpoint: Path) -> None:
        """Write the annex of a dry run and the record's last line, and close the record."""
        challenge = self._record.own_challenge
        drawn = drawn_blocks(challenge, len(self._sampled), self._run.numels)
        annex = Annex(
            self._run.run_token,
            challenge,
            self._data.providers,
            self._data.sha256,
            self._sampled,
            openings=self._vectors.openings(UPDATE, drawn.updates),
            weights=self._vectors.openings(WEIGHTS, drawn.weights),
            adapters=AdapterValues(self._adapters(self._start), self._adapters(self._last_weights())),
        )
        self._annex.touch(mode=0o600)
        write_annex(self._annex, annex)
        end = EndLine(
            rounds=len(self._rounds),
            bytes_down=sum(line.bytes_down for line in self._rounds),
            bytes_up=sum(line.bytes_up for line in self._rounds),
            checkpoint_sha256=sha256_of(checkpoint),
            annex_body_sha256=annex.body_sha256,
            public_key=public_key_of(self._key),
        )
        self._record.end(end, self._key)
        _flush(self._file)
        self.close()

    def close(self) -> None:
        """Close the record."""
        self._file.close()

    def _round_line(self, finished: Round) -> RoundLine:
        return RoundLine(
            round=finished.number,
            clients=len(finished.clients),
            sampling=self._run.sampling,
            clip_norm=self._run.clip_norm,
            noise_multiplier=self._run.noise.multiplier,
            bytes_down=finished.bytes_down,
            bytes_up=finished.bytes_up,
            update_root=vector_root(finished.aggregate.total.numpy()),
            weights_root=vector_root(finished.weights.numpy()),
        )

    def _last_weights(self) -> Floats:
        return self._vectors.read(WEIGHTS, len(self._rounds)) if self._rounds else self._start

    def _adapters(self, weights: Floats) -> Floats:
        """Return the coordinates of all adapters in `weights` (d,), end to end."""
        names = {tensor.name for adapter in self._run.adapters for tensor in adapter.tensors.values()}
        ends = np.cumsum(self._run.numels)
        parts = np.split(weights, ends[:-1])
        chosen = [
            part for tensor, part in zip(self._run.trainable, parts, strict=True) if tensor.name in names
        ]
        return np.concatenate([np.empty(0, np.float32), *chosen])


def _write_lines(record: Path, recorded: RecordedRounds) -> tuple[BinaryIO, RecordWriter]:
    """Replace the record atomically by these lines, and leave it open to append to."""
    with replacing(record) as new:
        file = new.open("wb")
        writer = RecordWriter(file, recorded.run)
        for line in recorded.lines:
            if isinstance(line, RoundLine):
                writer.round(line)
            else:
                writer.resume(line)
        _flush(file)
    return file, writer


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _whole_lines(record: Path) -> list[RunLine | RoundLine | ResumeLine | EndLine]:
    """Read the lines of a record that was interrupted, without a last line that was not fully written."""
    lines = []
    for text in record.read_text(encoding="utf-8").splitlines(keepends=True):
        if text.endswith("\n"):
            values = {
                name: value for name, value in json.loads(text).items() if name not in ("h", "signature")
            }
            lines.append(_LINE.validate_json(json.dumps(values)))
    return lines


def _run_line(record: Path) -> RunLine | None:
    """Read the first line of a record, if there is a whole one."""
    whole = _whole_lines(record)
    return whole[0] if whole and isinstance(whole[0], RunLine) else None


def _sampled_counts(vectors: VectorFolder, rounds: int) -> list[Mapping[int, int]]:
    """Read how many providers took part in each of the first `rounds` rounds, whose vectors must exist as well."""
    if missing := vectors.missing(rounds):
        raise ValueError(f"{missing.name} is not a vector of a round")
    lines = (vectors.path / SAMPLED).read_text(encoding="utf-8").splitlines()[:rounds]
    if len(lines) < rounds:
        raise ValueError(f"{SAMPLED} ends with round {len(lines)}, not {rounds}")
    return [{int(client): n for client, n in json.loads(line).items()} for line in lines]


def _counts_line(sampled: Mapping[int, int]) -> str:
    return json.dumps(sampled) + "\n"
