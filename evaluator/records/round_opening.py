"""The opening of some rounds of a replayable run: the keys of their coins and noise, and their vectors in full.

It is for the organizers only: whoever has it can subtract the noise of these rounds. It follows the site's challenge
and is a file of its own, beside the annex: one canonical JSON line, then for each round three vectors of little-endian
float32 end to end, the weights before the round, the noised sum uₜ, and the weights after it.

`check_opening` compares it with the record, to which it adds nothing that its team could still choose.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, TypeAdapter

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import MAX_DRAWN
from evaluator.records.canonical_lines import (
    canonical,
    check_canonical,
    parse_object,
    raw_lines,
    validate,
    values_of,
)
from evaluator.records.certificate import BLOCK, MAX_ROUNDS, Floats, root_of_pieces
from evaluator.records.lines import RecordLine, RunToken, Sha256, TrainingRecord
from evaluator.records.round_keys import OpenedKeys, interruptions_before, is_committed, replayed_rounds

OPENING_SCHEMA = "pfl-round-opening/2"
# A kilobyte for each round.
MAX_LINE_BYTES = 1 << 16
# A path has one hash for each level of the tree over all rounds.
MAX_PATH = (MAX_ROUNDS - 1).bit_length()
VECTORS = ("the weights before the round", "the noised sum", "the weights after the round")
# The coordinates that are read at a time, in whole blocks.
PIECE = 1024 * BLOCK


class OpenedKey(RecordLine):
    """The key of one round.

    Attributes:
        round: The number of the round, from 1.
        key: kₜ of `round_keys`, in hexadecimal.
        path: The path from the key to the record's `round_keys_root`.
    """

    round: Annotated[int, Field(ge=1, lt=2**31)]
    key: Sha256 = Field(repr=False)
    path: Annotated[list[Sha256], Field(max_length=MAX_PATH)]


class OpeningLine(RecordLine):
    """The first line of the file.

    Attributes:
        run_token: That of the record.
        rounds: The keys of the opened rounds, in their order.
    """

    type: Literal["opening"] = "opening"
    schema_version: Literal["pfl-round-opening/2"] = Field(default="pfl-round-opening/2", alias="schema")
    run_token: RunToken | None
    rounds: Annotated[list[OpenedKey], Field(min_length=1, max_length=1 + MAX_DRAWN)]


@dataclass(frozen=True)
class RoundOpening:
    """One opened round.

    Attributes:
        before, update, after: w₍ₜ₋₁₎, uₜ and wₜ (d,) float32, mapped and not in memory.
    """

    key: OpenedKey
    before: Floats
    update: Floats
    after: Floats


@dataclass(frozen=True)
class Opening:
    """An opening that was read: its first line, and its rounds."""

    line: OpeningLine
    rounds: list[RoundOpening]


_LINE: TypeAdapter[OpeningLine] = TypeAdapter(OpeningLine)


def write_opening(path: Path, line: OpeningLine, vectors: Sequence[Floats]) -> None:
    """Write an opening of three `vectors` (d,) for each round, in the order of `VECTORS`."""
    with path.open("wb") as file:
        file.write(canonical(values_of(line)) + b"\n")
        for vector in vectors:
            for begin in range(0, len(vector), PIECE):
                file.write(vector[begin : begin + PIECE].astype("<f4").tobytes())


def read_opening(path: Path, numel: int) -> Opening:
    """Read an opening of vectors (numel,).

    Raises:
        ProblemError: (`E_REPLAY_OPENING`) It isn't one, or has other vectors.
    """
    code = ErrorCode.REPLAY_OPENING
    raw = next(raw_lines(path, code, first_bytes=MAX_LINE_BYTES, other_bytes=0), b"")
    line = validate(_LINE, parse_object(raw, code, 1, OPENING_SCHEMA), code, 1)
    check_canonical(raw, values_of(line), code, 1)
    shape = (len(line.rounds), len(VECTORS), numel)
    size, expected = path.stat().st_size, len(raw) + 4 * math.prod(shape)
    if size != expected:
        raise ProblemError.of(
            code,
            where=path.name,
            expected=f"{expected} bytes, with {numel} coordinates",
            found=f"{size} bytes",
        )
    vectors = np.memmap(path, "<f4", "r", len(raw), shape)
    return Opening(line, [RoundOpening(key, *three) for key, three in zip(line.rounds, vectors, strict=True)])


def check_opening(record: TrainingRecord, opening: Opening, challenge: str, drawn: int) -> list[OpenedKeys]:
    """Compare an opening with the record that it belongs to, and return the keys of its rounds.

    Args:
        challenge: What the site drew after the record was uploaded, in hexadecimal; it draws rounds.
        drawn: How many, beside the last one.

    Raises:
        ProblemError: (`E_REPLAY_UNSUPPORTED`) The record has no keys, or no rounds; (`E_REPLAY_OPENING`) the opening is
            of another run, (`E_REPLAY_ROUND`) of other rounds; (`E_REPLAY_KEY`) a key or (`E_REPLAY_WEIGHTS`)
            vectors aren't those of the record.
    """
    line, root = opening.line, _keys_root(record)
    if line.run_token != record.run.run_token:
        raise ProblemError.of(
            ErrorCode.REPLAY_OPENING,
            where="run_token",
            expected=record.run.run_token,
            found=line.run_token,
        )
    expected, found = replayed_rounds(challenge, len(record.rounds), drawn), numbers_of(line)
    if found != expected:
        raise ProblemError.of(ErrorCode.REPLAY_ROUND, where="rounds", expected=expected, found=found)
    for each in opening.rounds:
        _check_round(record, each, root)
    return [
        OpenedKeys(
            each.round, bytes.fromhex(each.key), line.run_token, interruptions_before(record, each.round)
        )
        for each in line.rounds
    ]


def numbers_of(line: OpeningLine) -> list[int]:
    """Return the numbers of the opened rounds."""
    return [each.round for each in line.rounds]


def _check_round(record: TrainingRecord, opening: RoundOpening, root: str) -> None:
    key, number = opening.key, opening.key.round
    if not is_committed(bytes.fromhex(key.key), number, key.path, root=root, rounds=record.run.rounds):
        raise ProblemError.of(
            ErrorCode.REPLAY_KEY,
            where=f"key of round {number}",
            expected="the key under the record's round_keys_root",
            found="another one",
        )
    _check_vectors(record, opening)


def _keys_root(record: TrainingRecord) -> str:
    root = record.run.round_keys_root
    if root is None or not record.rounds:
        raise ProblemError.of(
            ErrorCode.REPLAY_UNSUPPORTED,
            where="training record, round_keys_root",
            expected="the root of the keys of at least one round",
            found="no round" if root else "none",
        )
    return root


def _check_vectors(record: TrainingRecord, opening: RoundOpening) -> None:
    number = opening.key.round
    before = record.rounds[number - 2].weights_root if number > 1 else record.run.weights_root
    roots = (before, record.rounds[number - 1].update_root, record.rounds[number - 1].weights_root)
    problems = [
        Problem.of(
            ErrorCode.REPLAY_WEIGHTS,
            where=f"round {number}, {name}",
            expected="finite numbers with the root of the training record",
            found="others",
        )
        for name, vector, root in zip(
            VECTORS, (opening.before, opening.update, opening.after), roots, strict=True
        )
        if not _has_root(vector, root)
    ]
    if problems:
        raise ProblemError(*problems)


def _has_root(vector: Floats, root: str) -> bool:
    pieces = [vector[begin : begin + PIECE] for begin in range(0, len(vector), PIECE)]
    return all(np.isfinite(piece).all() for piece in pieces) and root_of_pieces(pieces) == root
