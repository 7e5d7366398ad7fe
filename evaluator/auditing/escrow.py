"""The escrow file: which canaries are in the released training data. Whoever reads it can pass every audit.

It also fixes, before any model exists, how many canaries an audit guesses.
"""

import hashlib
import json
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from evaluator.docvqa.dataset import Dataset, first_line
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.base import Message

LEAST_CANARIES = 100
# Of the canaries: so many are in the training and sampled at all even where few rounds sample few providers.
GUESS_SHARE = 0.2
SPLIT = "canaries"


class Escrow(Message):
    """The coins of all canaries.

    Attributes:
        data_sha256: Of the split that holds all canaries' pages and questions, beside the escrow file.
        guesses: How many canaries an audit says of that they were trained on: those of the highest scores.
        is_released: The coin of each canary, by its provider name.
    """

    format: Literal["pfl-canaries/1"] = "pfl-canaries/1"
    data_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    guesses: int = Field(ge=1)
    is_released: dict[str, bool]

    @model_validator(mode="after")
    def _enough_canaries(self) -> Self:
        if len(self.is_released) < LEAST_CANARIES:
            raise ValueError(f"{len(self.is_released)} canaries, fewer than {LEAST_CANARIES}")
        if self.guesses > len(self.is_released):
            raise ValueError(f"{self.guesses} guesses of {len(self.is_released)} canaries")
        return self

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the escrow file at `path`. Raises ProblemError (`E_AUDIT_ESCROW`) where it is none."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise ProblemError.of(
                ErrorCode.AUDIT_ESCROW, str(path), "an escrow file", first_line(error)
            ) from error

    def write(self, path: Path) -> None:
        """Write the file for its owner alone."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(self.model_dump(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def check_data(self, dataset: Dataset) -> None:
        """Raise ProblemError (`E_AUDIT_ESCROW`) unless `dataset` holds the canaries of this file, unchanged."""
        found = dataset.sha256()
        if found != self.data_sha256:
            raise ProblemError.of(
                ErrorCode.AUDIT_ESCROW,
                where=str(dataset.folder),
                expected=f"the canaries of SHA-256 {self.data_sha256[:12]}…",
                found=f"{found[:12]}…",
            )

    def order(self) -> list[str]:
        """Return the canaries in an order that no coin enters: by the hash of their name. It breaks ties of scores."""
        return sorted(self.is_released, key=lambda name: hashlib.sha256(name.encode()).digest())
