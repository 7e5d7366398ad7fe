"""The training record of a private run, written as training goes, and its annex, written at the end.

The record is public: it names no provider and tells neither how many took part nor how long that took. How many of
each client's providers took part goes into the annex, which is for the organizers. Until the end the noised sums uₜ
of all rounds are kept on disk, 4·d bytes each: which blocks of them the annex shows follows from the finished
record, so that they can't be chosen to please.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import TypeAdapter
from torch import Tensor

from evaluator.checkpoints.contents import sha256_of
from evaluator.contracts import ArtifactKind
from evaluator.records.annex import Annex, write_annex
from evaluator.records.certificate import Opening, drawn_openings, open_blocks, update_root
from evaluator.records.lines import (
    AnyLine,
    EndLine,
    FixedSize,
    Full,
    GlobalPoisson,
    ResumeLine,
    RoundLine,
    RunLine,
    TwoStagePoisson,
)
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter
from starter_kit.federation.rounds import Round
from starter_kit.runs.folder import FILES
from starter_kit.runs.resuming import RunState, fsync_path, reading_unfinished_run

SUMS = "noised_sums"
SAMPLED = "sampled.jsonl"  # private; one line a round, made into the annex at the end

_LINE: TypeAdapter[RunLine | RoundLine | ResumeLine | EndLine] = TypeAdapter(AnyLine)


class PrivateRecorder:
    """Writes one run's record and annex into `folder`.

    Args:
        run: The record's first line.
        key: Signs the last one.
        providers: How many providers each client has.
        state: Where the run goes on, if it was interrupted: what the folder has of earlier rounds is kept, and its
            first line as well, with its run token. What `run` claims is claimed from there on.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The folder lacks something of the earlier rounds.
    """

    def __init__(
        self,
        folder: Path,
        run: RunLine,
        key: Ed25519PrivateKey,
        providers: Mapping[int, int],
        state: RunState | None = None,
    ) -> None:
        self._key = key
        self._providers = providers
        self._sampled: list[Mapping[int, int]] = []
        self._bytes_down = self._bytes_up = 0
        self._annex = folder / FILES[ArtifactKind.TRAINING_ANNEX]
        self._sums = folder / SUMS
        record = folder / FILES[ArtifactKind.TRAINING_RECORD]
        self._run = run
        earlier: list[RoundLine | ResumeLine] = []
        if state:
            with reading_unfinished_run(folder):
                self._run, earlier = _earlier(record, state.round)
                self._sampled = self._earlier_counts(state.round)
        self._sums.mkdir(mode=0o700, exist_ok=state is not None)
        new = record.with_name(f"{record.name}.new")
        self._file = new.open("wb")
        self._record = RecordWriter(self._file, self._run)
        for line in earlier:
            if isinstance(line, RoundLine):
                self._count(line)
            else:
                self._record.resume(line)
        if state:
            told = sum(isinstance(line, ResumeLine) and line.begun for line in earlier)
            untold = state.interrupted_rounds - told
            for begun in [True] * untold or [False]:
                self._record.resume(
                    ResumeLine(round=state.round + 1, begun=begun, claimed_epsilon=run.claimed_epsilon)
                )
        self._flush()
        new.replace(record)
        counts = self._sums / f"{SAMPLED}.new"
        counts.write_text("".join(map(_counts_line, self._sampled)), encoding="utf-8")
        fsync_path(counts)
        counts.replace(self._sums / SAMPLED)
        fsync_path(self._sums)
        fsync_path(folder)

    def round(self, round: Round) -> None:  # noqa: A002 - the field's own word
        """Record a finished round."""
        client_rate, provider_rate = _rates(self._run)
        total = round.aggregate.total.numpy()
        total.astype("<f4", copy=False).tofile(self._sum_file(round.number))
        fsync_path(self._sum_file(round.number))
        self._count(
            RoundLine(
                round=round.number,
                clients=len(round.clients),
                client_rate=client_rate,
                provider_rate=provider_rate,
                clip_norm=self._run.clip_norm,
                noise_multiplier=self._run.noise.multiplier,
                bytes_down=round.bytes_down,
                bytes_up=round.bytes_up,
                model_in_sha256=_sha256(round.start),
                model_out_sha256=_sha256(round.weights),
                update_root=update_root(total),
            )
        )
        self._sampled.append(round.sampled)
        with (self._sums / SAMPLED).open("a", encoding="utf-8") as file:
            file.write(_counts_line(round.sampled))
        fsync_path(self._sums / SAMPLED)
        self._flush()

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _count(self, line: RoundLine) -> None:
        self._record.round(line)
        self._bytes_down += line.bytes_down
        self._bytes_up += line.bytes_up

    def finish(self, checkpoint: Path) -> None:
        """Write the annex and the record's last line."""
        self._annex.touch(mode=0o600)
        write_annex(self._annex, Annex(self._run.run_token, self._providers, self._sampled, self._openings()))
        end = EndLine(
            rounds=len(self._sampled),
            bytes_down=self._bytes_down,
            bytes_up=self._bytes_up,
            checkpoint_sha256=sha256_of(checkpoint),
            annex_sha256=sha256_of(self._annex),
            public_key=public_key_of(self._key),
        )
        self._record.end(end, self._key)
        self._flush()

    def close(self) -> None:
        self._file.close()

    def _openings(self) -> dict[tuple[int, int], Opening]:
        """The blocks of the noised sums that the record's challenge asks for."""
        blocks: dict[int, list[int]] = {}
        for number, block in drawn_openings(self._record.challenge, len(self._sampled), self._run.numel):
            blocks.setdefault(number, []).append(block)
        return {
            (number, opening.block): opening
            for number, indexes in blocks.items()
            for opening in open_blocks(np.memmap(self._sum_file(number), "<f4", "r"), indexes)
        }

    def _earlier_counts(self, rounds: int) -> list[Mapping[int, int]]:
        """How many providers took part in each of the first `rounds` rounds, whose noised sums are there as well."""
        for number in range(1, rounds + 1):
            if self._sum_file(number).stat().st_size != 4 * self._run.numel:
                raise ValueError(f"{self._sum_file(number).name} is not the noised sum of a round")
        lines = (self._sums / SAMPLED).read_text(encoding="utf-8").splitlines()[:rounds]
        if len(lines) < rounds:
            raise ValueError(f"{SAMPLED} ends with round {len(lines)}, not {rounds}")
        return [{int(client): n for client, n in json.loads(line).items()} for line in lines]

    def _sum_file(self, number: int) -> Path:
        return self._sums / f"{number}.f32"


def _rates(run: RunLine) -> tuple[float, float]:
    """Of clients and of providers, as round lines have them."""
    match run.sampling:
        case GlobalPoisson(provider_rate=provider_rate):
            return 1.0, provider_rate
        case TwoStagePoisson(client_rate=client_rate, provider_rate=provider_rate):
            return client_rate, provider_rate
        case FixedSize(clients_per_round=clients, provider_rate=provider_rate):
            return clients / run.clients, provider_rate
        case Full():
            return 1.0, 1.0


def _earlier(record: Path, rounds: int) -> tuple[RunLine, list[RoundLine | ResumeLine]]:
    """What a record that was interrupted says up to its first `rounds` rounds. Raises ValueError where it lacks any."""
    lines = []
    for text in record.read_text(encoding="utf-8").splitlines(keepends=True):
        if text.endswith("\n"):  # else the break was in the middle of it
            values = {
                name: value for name, value in json.loads(text).items() if name not in ("h", "signature")
            }
            lines.append(_LINE.validate_json(json.dumps(values)))
    if not lines or not isinstance(run := lines[0], RunLine):
        raise ValueError(f"{record.name} doesn't begin with a line of type run")
    earlier = [
        line
        for line in lines[1:]
        if (isinstance(line, RoundLine) and line.round <= rounds)
        or (isinstance(line, ResumeLine) and line.round <= rounds + 1)
    ]
    told = [line.round for line in earlier if isinstance(line, RoundLine)]
    if told != list(range(1, rounds + 1)):
        raise ValueError(f"{record.name} lacks some of the first {rounds} rounds")
    return run, earlier


def _counts_line(sampled: Mapping[int, int]) -> str:
    return json.dumps(sampled) + "\n"


def _sha256(weights: Tensor) -> str:
    """Of a weight vector's float32 numbers, little-endian, in the order of the record's tensors."""
    return hashlib.sha256(weights.numpy().astype("<f4", copy=False).tobytes()).hexdigest()
