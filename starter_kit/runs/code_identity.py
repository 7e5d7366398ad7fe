"""What training records say of a run's code and terms, for the organizers' examinations.

They call these functions in a sandbox (`evaluator.sandbox`), for the records are of others.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.records.lines import RunLine
from evaluator.records.reading import read_record
from evaluator.records.terms import agree
from starter_kit.runs.executed_code import code_sha256

MAX_ROUNDS = 1_000_000
# What differs from training to training, or says who trained.
OWN_TERMS = {"run_token", "kit_version", "code_sha256", "round_keys_root"}


def identify(inputs: Any, _: Callable[[object], None]) -> dict[str, object]:
    """Return the hash of this kit's sources with the settings file, and whether the record states it.

    Args:
        inputs: The paths of the `settings`, and of the `record`, or None where the run has none.

    Raises:
        ProblemError: The record can't be read.
    """
    code = code_sha256(more=Path(inputs["settings"]).read_text(encoding="utf-8"))
    stated = None
    if inputs["record"] is not None:
        stated = read_record(Path(inputs["record"]), max_rounds=MAX_ROUNDS).run.code_sha256 == code
    return {"code_sha256": code, "is_recorded": stated}


def differing_terms(inputs: Any, _: Callable[[object], None]) -> list[str]:
    """Return the names of what the first lines of two records state differently, beside what is their own.

    Args:
        inputs: The paths of the records, as `submitted` and `repeated`.

    Raises:
        ProblemError: One of them can't be read.
    """
    submitted, repeated = (
        read_record(Path(inputs[name]), max_rounds=MAX_ROUNDS).run.model_dump(mode="json")
        for name in ("submitted", "repeated")
    )
    names = (name for name in RunLine.model_fields if name not in OWN_TERMS)
    # A line leaves out a term that is the default.
    return [name for name in names if not agree(submitted.get(name), repeated.get(name))]
