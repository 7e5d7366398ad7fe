"""Which code a run's settings and this kit amount to, and whether a training record states the same.

`identify` is for the organizers' examinations, which call it in a sandbox; see `evaluator.sandbox`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.records.reading import read_record
from starter_kit.runs.record_line import code_sha256

MAX_ROUNDS = 1_000_000


def identify(inputs: Any, _: Callable[[object], None]) -> dict[str, object]:
    """Return the hash of this kit's sources with the settings file, and whether the record states it.

    Args:
        inputs: The paths of the `settings`, and of the `record`, or None where the run has none.

    Raises:
        ProblemError: The record can't be read.
    """
    code = code_sha256(Path(inputs["settings"]).read_text(encoding="utf-8"))
    stated = None
    if inputs["record"] is not None:
        stated = read_record(Path(inputs["record"]), max_rounds=MAX_ROUNDS).run.code_sha256 == code
    return {"code_sha256": code, "is_recorded": stated}
