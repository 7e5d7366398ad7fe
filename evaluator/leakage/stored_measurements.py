"""Measurements of a model, stored on disk: an assessment that is interrupted, or repeated, measures only the rest.

Base weights are measured once for all runs of a track. The stored measurements quote answers, and are as secret as the
data; they stay for two weeks after their last use, as finished shards of a scoring do.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from evaluator.leakage.measuring import Measured
from evaluator.leakage.statistics import Floats
from evaluator.messages.base import Message
from evaluator.scoring.predictions import forget_old


class _File(Message):
    """NaN is None in JSON."""

    answers: list[str]
    confidence: list[float | None]
    loss: list[float | None]


class StoredMeasurements:
    """The measurements of one model, a file for each stage.

    Args:
        folder: Of all models; this one's folder in it is named after a hash of `parts`.
        parts: All that the measurements depend on.
    """

    def __init__(self, folder: Path, parts: Mapping[str, object]) -> None:
        name = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
        forget_old(folder, name)
        self._folder = folder / name

    def get(self, stage: str, measure: Callable[[], Measured]) -> Measured:
        """Return the stored measurements of a stage, or measure and store them."""
        path = self._folder / f"{stage}.json"
        try:
            file = _File.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            measured = measure()
            self._write(path, measured)
            return measured
        return Measured(file.answers, _array(file.confidence), _array(file.loss))

    def _write(self, path: Path, measured: Measured) -> None:
        file = _File(
            answers=measured.answers,
            confidence=_list(measured.confidence),
            loss=_list(measured.loss),
        )
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(file.model_dump_json(), encoding="utf-8")
        partial.replace(path)


def _array(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _list(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
