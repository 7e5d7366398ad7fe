"""The vectors of a private run on disk: what its annex opens blocks of.

They are the noised sum uₜ of every round and the weights wₜ after it, of 4·d bytes each, so 8·d·T bytes for a run of T
rounds. The site draws the blocks when it has the record, so that nobody can choose convenient ones: until then all of
them may be needed, and a finished run keeps the folder until it was submitted. What it holds was released to whoever
saw the models of all rounds.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.annex import Openings
from evaluator.records.certificate import Floats, open_blocks
from starter_kit.reporting.files import fsync_path

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = "vectors"
# The vectors of a round: the noised sum, and the weights after it.
UPDATE, WEIGHTS = "update", "weights"


@dataclass(frozen=True)
class VectorFolder:
    """The folder `vectors` of a run folder.

    Attributes:
        numel: d, the length of each vector.
    """

    path: Path
    numel: int

    @classmethod
    def of(cls, run: Path, numel: int) -> "VectorFolder":
        """Return the folder of the run in the folder `run`."""
        return cls(run / FOLDER, numel)

    def create(self, *, exist_ok: bool) -> None:
        """Create the folder, for its owner only."""
        self.path.mkdir(mode=0o700, exist_ok=exist_ok)

    def store(self, number: int, total: "Tensor", weights: "Tensor") -> None:
        """Write the noised sum of a round, and the weights after it."""
        self._write(UPDATE, number, total)
        self._write(WEIGHTS, number, weights)

    def store_start(self, weights: "Tensor") -> None:
        """Write the weights before the first round, as those after round 0."""
        self._write(WEIGHTS, 0, weights)

    def read(self, kind: str, number: int) -> Floats:
        """Return a stored vector float32 (d,), mapped into memory."""
        return np.memmap(self.file(kind, number), "<f4", "r")

    def file(self, kind: str, number: int) -> Path:
        """Return the path of a vector."""
        return self.path / f"{kind}-{number}.f32"

    def missing(self, rounds: int) -> Path | None:
        """Return the first file of the first `rounds` rounds that isn't there as a whole; None if all are."""
        for number in range(1, rounds + 1):
            for path in (self.file(kind, number) for kind in (UPDATE, WEIGHTS)):
                if not path.is_file() or path.stat().st_size != 4 * self.numel:
                    return path
        return None

    def openings(self, kind: str, drawn: Sequence[tuple[int, int]]) -> Openings:
        """Return the blocks of the rounds' vectors of this kind at each drawn (round, block)."""
        return {
            (number, opening.block): opening
            for number, places in groupby(drawn, key=itemgetter(0))
            for opening in open_blocks(self.read(kind, number), [block for _, block in places])
        }

    def require(self, rounds: int, *, next_step: str) -> None:
        """Raise `ProblemError` (`E_RECORD_CHALLENGE`) unless the vectors of all `rounds` rounds are there."""
        if missing := self.missing(rounds):
            raise ProblemError.of(
                ErrorCode.RECORD_CHALLENGE,
                message="The annex can't be made: the run folder doesn't have the vectors of all rounds any more.",
                where=str(missing),
                expected=f"a vector of {self.numel} float32",
                found="no such file",
                next_step=next_step,
            )

    def _write(self, kind: str, number: int, vector: "Tensor") -> None:
        path = self.file(kind, number)
        vector.numpy().astype("<f4", copy=False).tofile(path)
        fsync_path(path)

    @property
    def size_bytes(self) -> int:
        """How many bytes the vectors take."""
        return sum(path.stat().st_size for path in self.path.glob("*.f32"))

    def remove(self) -> int:
        """Delete the folder, and return how many bytes it took."""
        size_bytes = self.size_bytes
        if self.path.exists():
            shutil.rmtree(self.path)
        return size_bytes
