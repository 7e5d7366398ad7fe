"""The annex of a training record: what only organizers may see, for checks that the public record can't carry.

It holds how many providers each client has and how many took part in each round, and the parts of the noised sums
that the record's challenge asks for. The record's last line carries its SHA-256. Like the record it is made of
canonical JSON lines, and read under hard caps.
"""

import base64
import binascii
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, TypeAdapter

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.values import Count
from evaluator.records.canonical_lines import (
    canonical,
    check_canonical,
    parse_object,
    raw_lines,
    validate,
    values_of,
)
from evaluator.records.certificate import MAX_OPENINGS, Opening
from evaluator.records.lines import Line, RunToken, Sha256

ANNEX_SCHEMA = "pfl-dp-annex/1"
# The openings take at most half of it.
MAX_BYTES = 32 * 1024**2
MAX_LINE_BYTES = 64 * 1024

# As a key of a JSON object, a client's id is text; canonical form leaves one way to write it.
ClientId = Annotated[int, Field(strict=False, ge=0, lt=2**31)]
RoundNumber = Annotated[int, Field(ge=1, lt=2**31)]
Counts = dict[ClientId, Count]


class AnnexLine(Line):
    """The first line. `run_token` is that of the record.

    The salt is random and keeps the annex's hash, which is public, from revealing anything about the counts.
    """

    type: Literal["annex"] = "annex"
    schema_version: Literal["pfl-dp-annex/1"] = Field(default="pfl-dp-annex/1", alias="schema")
    salt: Sha256
    run_token: RunToken | None
    providers_per_client: Counts


class SampledLine(Line):
    """How many providers of each participating client were sampled in a round, which may be 0."""

    type: Literal["round"] = "round"
    round: RoundNumber
    sampled: Counts


class OpeningLine(Line):
    """A block of a round's noised sum: base64 of little-endian float32, and its path to the round's root."""

    type: Literal["opening"] = "opening"
    round: RoundNumber
    block: Count
    values: Annotated[str, Field(max_length=8192)]
    path: Annotated[list[Sha256], Field(max_length=32)]


_LINE: TypeAdapter[AnnexLine | SampledLine | OpeningLine] = TypeAdapter(
    Annotated[AnnexLine | SampledLine | OpeningLine, Field(discriminator="type")]
)


@dataclass(frozen=True)
class Annex:
    """The content of an annex, not yet compared with its record.

    Attributes:
        run_token: The run token of the record.
        providers_per_client: The number of providers of each client.
        sampled: For each round, from the first, the number of sampled providers of each client that took part.
        openings: The opened block for each (round, block), with rounds counted from 1.
    """

    run_token: str | None
    providers_per_client: Mapping[int, int]
    sampled: Sequence[Mapping[int, int]]
    openings: dict[tuple[int, int], Opening]


def write_annex(path: Path, annex: Annex) -> None:
    """Write `annex` to `path`, replacing a file that is there."""
    with path.open("wb") as file:
        file.writelines(canonical(values_of(line)) + b"\n" for line in _lines(annex))


def _lines(annex: Annex) -> Iterator[AnnexLine | SampledLine | OpeningLine]:
    yield AnnexLine(
        salt=secrets.token_hex(32),
        run_token=annex.run_token,
        providers_per_client=dict(annex.providers_per_client),
    )
    for number, sampled in enumerate(annex.sampled, 1):
        yield SampledLine(round=number, sampled=dict(sampled))
    for (number, block), opening in annex.openings.items():
        values = base64.b64encode(opening.values.astype("<f4").tobytes()).decode()
        yield OpeningLine(round=number, block=block, values=values, path=opening.path)


def read_annex(path: Path, *, clients: int, max_rounds: int) -> Annex:
    """Read an annex of at most `clients` clients and `max_rounds` rounds.

    Raises:
        ProblemError: ``E_RECORD_ANNEX``, naming the line and the field.
    """
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ProblemError.of(
            ErrorCode.RECORD_ANNEX, expected=f"at most {MAX_BYTES} bytes", found=f"{size} bytes"
        )
    first: AnnexLine | None = None
    sampled: list[Mapping[int, int]] = []
    openings: dict[tuple[int, int], Opening] = {}
    lines = raw_lines(path, ErrorCode.RECORD_ANNEX, first_bytes=MAX_LINE_BYTES, other_bytes=MAX_LINE_BYTES)
    for number, raw in enumerate(lines, 1):
        line = _read_line(raw, number)
        match line:
            case AnnexLine() if number == 1 and len(line.providers_per_client) <= clients:
                first = line
            case SampledLine() if (
                line.round == number - 1 == len(sampled) + 1 <= max_rounds and len(line.sampled) <= clients
            ):
                sampled.append(line.sampled)
            case OpeningLine() if (
                first and (line.round, line.block) not in openings and len(openings) < MAX_OPENINGS
            ):
                openings[line.round, line.block] = _opening(line, number)
            case _:
                raise ProblemError.of(
                    ErrorCode.RECORD_ANNEX,
                    where=f"line {number}",
                    expected=f"a line of type annex; then rounds in order, at most {max_rounds}; then different "
                    f"openings, at most {MAX_OPENINGS}; and no more than {clients} clients in any",
                    found=f"one of type {line.type} that doesn't fit here",
                )
    if first is None:
        raise ProblemError.of(
            ErrorCode.RECORD_ANNEX, where="line 1", expected="a line of type annex", found="nothing"
        )
    return Annex(first.run_token, first.providers_per_client, sampled, openings)


def _read_line(raw: bytes, number: int) -> AnnexLine | SampledLine | OpeningLine:
    values = parse_object(raw, ErrorCode.RECORD_ANNEX, number, ANNEX_SCHEMA)
    line = validate(_LINE, values, ErrorCode.RECORD_ANNEX, number)
    check_canonical(raw, values_of(line), ErrorCode.RECORD_ANNEX, number)
    return line


def _opening(line: OpeningLine, number: int) -> Opening:
    problem = _values_problem(number)
    try:
        data = base64.b64decode(line.values, validate=True)
        # A ValueError, where the bytes are not a whole number of floats.
        values = np.frombuffer(data, "<f4").astype(np.float32)
    except (binascii.Error, ValueError) as error:
        raise problem from error
    if not np.isfinite(values).all():
        raise problem
    return Opening(line.block, values, line.path)


def _values_problem(number: int) -> ProblemError:
    return ProblemError.of(
        ErrorCode.RECORD_ANNEX,
        where=f"line {number}, values",
        expected="base64 of finite little-endian float32",
        found="something else",
    )
