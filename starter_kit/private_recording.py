"""The training record of a private run, written as training goes, and its annex, written at the end.

The record is public: it names no provider and tells neither how many took part nor how long that took. How many of
each client's providers took part goes into the annex, which is for the organizers. Until the end the noised sums uₜ
of all rounds are kept on disk, 4·d bytes each: which blocks of them the annex shows follows from the finished
record, so that they can't be chosen to please.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import Tensor

from evaluator.checkpoints import sha256_of
from evaluator.contracts import ArtifactKind
from evaluator.records.annex import Annex, write_annex
from evaluator.records.certificate import Opening, drawn_openings, open_blocks, update_root
from evaluator.records.lines import EndLine, GlobalPoisson, RoundLine, RunLine, Sampling, TwoStagePoisson
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter
from starter_kit.rounds import Round
from starter_kit.run_folder import FILES

SUMS = "noised_sums"


class PrivateRecorder:
    """Writes one run's record and annex into `folder`.

    Args:
        run: The record's first line.
        key: Signs the last one.
        providers: How many providers each client has.
    """

    def __init__(
        self, folder: Path, run: RunLine, key: Ed25519PrivateKey, providers: Mapping[int, int]
    ) -> None:
        self._run = run
        self._key = key
        self._providers = providers
        self._sampled: list[Mapping[int, int]] = []
        self._bytes_down = self._bytes_up = 0
        self._annex = folder / FILES[ArtifactKind.TRAINING_ANNEX]
        self._sums = folder / SUMS
        self._sums.mkdir()
        self._file = (folder / FILES[ArtifactKind.TRAINING_RECORD]).open("wb", buffering=0)
        self._record = RecordWriter(self._file, run)

    def round(self, round: Round) -> None:  # noqa: A002 - the field's own word
        """Record a finished round."""
        client_rate, provider_rate = _rates(self._run.sampling)
        total = round.aggregate.total.numpy()
        total.astype("<f4", copy=False).tofile(self._sum_file(round.number))
        self._record.round(
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
        self._bytes_down += round.bytes_down
        self._bytes_up += round.bytes_up

    def finish(self, checkpoint: Path) -> None:
        """Write the annex and the record's last line, and delete the noised sums."""
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
        shutil.rmtree(self._sums)

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

    def _sum_file(self, number: int) -> Path:
        return self._sums / f"{number}.f32"


def _rates(sampling: Sampling) -> tuple[float, float]:
    """Of clients and of providers; the kit's methods sample both by coins."""
    match sampling:
        case GlobalPoisson(provider_rate=provider_rate):
            return 1.0, provider_rate
        case TwoStagePoisson(client_rate=client_rate, provider_rate=provider_rate):
            return client_rate, provider_rate
    raise ValueError(f"no method of the starter kit samples by {sampling.type}")


def _sha256(weights: Tensor) -> str:
    """Of a weight vector's float32 numbers, little-endian, in the order of the record's tensors."""
    return hashlib.sha256(weights.numpy().astype("<f4", copy=False).tobytes()).hexdigest()
