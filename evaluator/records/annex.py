"""The annex of a training record: what only organizers may see, for checks that the public record can't carry.

It holds which data the run trained on, how many providers each client has and how many took part in each round;
adapters as they were at the start and at the end; and the blocks of the noised sums and of the weights that a challenge
asks for. Like the record it is made of canonical JSON lines, and read under hard caps.

All but the openings are its body, whose SHA-256 the record's last line carries: they are fixed with the record. The
first line, which names the challenge, and the openings are made when the challenge is known. They need no hash, because
the record has the roots of all vectors.
"""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from evaluator.records.certificate import MAX_OPENINGS, Floats, Opening
from evaluator.records.lines import MAX_ADAPTER_NUMEL, Challenge, RecordLine, RunToken, Sha256

ANNEX_SCHEMA = "pfl-dp-annex/3"
# The openings take at most 231 MiB of it, and the adapters 22.
MAX_BYTES = 256 * 1024**2
MAX_LINE_BYTES = 64 * 1024
# The coordinates of adapters on one line.
ADAPTER_VALUES = 8192

# As a key of a JSON object, a client's id is text; canonical form leaves one way to write it.
ClientId = Annotated[int, Field(strict=False, ge=0, lt=2**31)]
RoundNumber = Annotated[int, Field(ge=1, lt=2**31)]
Counts = dict[ClientId, Count]


class AnnexLine(RecordLine):
    """The first line. `run_token` is that of the record, and `challenge` is what the openings were drawn from."""

    type: Literal["annex"] = "annex"
    schema_version: Literal["pfl-dp-annex/3"] = Field(default="pfl-dp-annex/3", alias="schema")
    run_token: RunToken | None
    challenge: Challenge


class DataLine(RecordLine):
    """The second line, the first of the body: how many providers each client has, and the hash of the data manifest.

    That hash tells whoever can guess the data whether they guessed right, so the public record doesn't have it. The
    salt is random and keeps the body's hash, which is public, from revealing anything about data and counts.
    """

    type: Literal["data"] = "data"
    salt: Sha256
    providers_per_client: Counts
    data_sha256: Sha256


class SampledLine(RecordLine):
    """How many providers of each participating client were sampled in a round, which may be 0."""

    type: Literal["round"] = "round"
    round: RoundNumber
    sampled: Counts


class AdapterLine(RecordLine):
    """The next coordinates of all adapters at the start or at the end: base64 of little-endian float32.

    The adapters are end to end, in the order of the record's trainable tensors. Every line but the last one of the
    start and of the end has `ADAPTER_VALUES` coordinates.
    """

    type: Literal["adapters"] = "adapters"
    at: Literal["start", "end"]
    values: Annotated[str, Field(max_length=43_692)]


class OpeningLine(RecordLine):
    """A block of a round's noised sum, or of the weights after it, and its path to that vector's root.

    Values are base64 of little-endian float32.
    """

    type: Literal["opening"] = "opening"
    vector: Literal["update", "weights"]
    round: RoundNumber
    block: Count
    values: Annotated[str, Field(max_length=8192)]
    path: Annotated[list[Sha256], Field(max_length=32)]


AnyAnnexLine = AnnexLine | DataLine | SampledLine | AdapterLine | OpeningLine
_LINE: TypeAdapter[AnyAnnexLine] = TypeAdapter(Annotated[AnyAnnexLine, Field(discriminator="type")])
Openings = dict[tuple[int, int], Opening]


@dataclass(frozen=True)
class AdapterValues:
    """All adapters end to end, in the order of the record's trainable tensors, at the start and at the end."""

    start: Floats
    end: Floats


NO_ADAPTERS = AdapterValues(np.empty(0, np.float32), np.empty(0, np.float32))


@dataclass(frozen=True)
class Annex:
    """The content of an annex, not yet compared with its record.

    Attributes:
        run_token: The run token of the record.
        challenge: What the openings were drawn from.
        providers_per_client: The number of providers of each client.
        data_sha256: The hash of the data manifest (`evaluator.docvqa.manifest`): who has which documents to train on.
        sampled: For each round, from the first, the number of providers sampled at each client that took part.
        openings: The opened block of the round's noised sum for each (round, block), with rounds counted from 1.
        weights: Likewise of the weights after the round.
        adapters: Empty where none are trained.
        salt: Random, in hexadecimal; part of the body, so that an annex keeps it when it answers another challenge.
    """

    run_token: str | None
    challenge: str
    providers_per_client: Mapping[int, int]
    data_sha256: str
    sampled: Sequence[Mapping[int, int]]
    openings: Openings
    weights: Openings
    adapters: AdapterValues = NO_ADAPTERS
    salt: str = field(default_factory=lambda: secrets.token_hex(32))

    @property
    def body_sha256(self) -> str:
        """The SHA-256 of the lines that are fixed with the record: all but the first one and the openings."""
        digest = hashlib.sha256()
        for line in _body(self):
            digest.update(_encoded_line(line))
        return digest.hexdigest()


def write_annex(path: Path, annex: Annex) -> None:
    """Write `annex` to `path`, replacing a file that is there."""
    with path.open("wb") as file:
        file.writelines(map(_encoded_line, _lines(annex)))


def read_first_line(raw: bytes) -> AnnexLine:
    """Read the first line of an annex, with its newline.

    Raises:
        ProblemError: ``E_RECORD_ANNEX``, naming the field.
    """
    line = _read_line(raw, 1)
    if not isinstance(line, AnnexLine):
        raise ProblemError.of(
            ErrorCode.RECORD_ANNEX,
            where="line 1",
            expected="a line of type annex",
            found=f"one of type {line.type}",
        )
    return line


def _encoded_line(line: AnyAnnexLine) -> bytes:
    return canonical(values_of(line)) + b"\n"


def _lines(annex: Annex) -> Iterator[AnyAnnexLine]:
    yield AnnexLine(run_token=annex.run_token, challenge=annex.challenge)
    yield from _body(annex)
    yield from _openings(annex)


def _body(annex: Annex) -> Iterator[AnyAnnexLine]:
    yield DataLine(
        salt=annex.salt,
        providers_per_client=dict(annex.providers_per_client),
        data_sha256=annex.data_sha256,
    )
    for number, sampled in enumerate(annex.sampled, 1):
        yield SampledLine(round=number, sampled=dict(sampled))
    for begin in range(0, len(annex.adapters.start), ADAPTER_VALUES):
        yield AdapterLine(at="start", values=_encoded(annex.adapters.start[begin : begin + ADAPTER_VALUES]))
    for begin in range(0, len(annex.adapters.end), ADAPTER_VALUES):
        yield AdapterLine(at="end", values=_encoded(annex.adapters.end[begin : begin + ADAPTER_VALUES]))


def _openings(annex: Annex) -> Iterator[OpeningLine]:
    for (number, block), opening in annex.openings.items():
        yield _opening_line("update", number, block, opening)
    for (number, block), opening in annex.weights.items():
        yield _opening_line("weights", number, block, opening)


def _opening_line(
    vector: Literal["update", "weights"], number: int, block: int, opening: Opening
) -> OpeningLine:
    return OpeningLine(
        vector=vector, round=number, block=block, values=_encoded(opening.values), path=opening.path
    )


def read_annex(path: Path, *, clients: int, max_rounds: int) -> Annex:
    """Read an annex of at most `clients` clients and `max_rounds` rounds.

    Raises:
        ProblemError: ``E_RECORD_ANNEX``, naming the line and the field.
    """
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ProblemError.of(
            ErrorCode.RECORD_ANNEX, expected=f"at most {MAX_BYTES} bytes", found=f"{size} bytes"
        )
    reader = _Reader(clients, max_rounds)
    lines = raw_lines(path, ErrorCode.RECORD_ANNEX, first_bytes=MAX_LINE_BYTES, other_bytes=MAX_LINE_BYTES)
    for number, raw in enumerate(lines, 1):
        reader.add(_read_line(raw, number), number)
    return reader.annex()


class _Reader:
    """Takes the lines of an annex in their order, of at most so many clients and rounds."""

    def __init__(self, clients: int, max_rounds: int) -> None:
        self._clients = clients
        self._max_rounds = max_rounds
        self._first: AnnexLine | None = None
        self._data: DataLine | None = None
        self._sampled: list[Mapping[int, int]] = []
        self._adapters: dict[str, list[Floats]] = {"start": [], "end": []}
        self._openings: dict[str, Openings] = {"update": {}, "weights": {}}

    def add(self, line: AnyAnnexLine, number: int) -> None:
        """Take a line. Raises ProblemError where it doesn't fit where it is, or isn't of finite numbers."""
        if not self._fits(line, number):
            raise ProblemError.of(
                ErrorCode.RECORD_ANNEX,
                where=f"line {number}",
                expected=f"a line of type annex; one of type data; rounds in order, at most {self._max_rounds}; "
                f"at most {MAX_ADAPTER_NUMEL} coordinates of adapters, first of the start; then different openings, at "
                f"most {MAX_OPENINGS} of either vector; and no more than {self._clients} clients in any",
                found=f"one of type {line.type} that doesn't fit here",
            )
        match line:
            case AnnexLine():
                self._first = line
            case DataLine():
                self._data = line
            case SampledLine():
                self._sampled.append(line.sampled)
            case AdapterLine():
                self._adapters[line.at].append(_decoded(line.values, number))
            case OpeningLine():
                opening = Opening(line.block, _decoded(line.values, number), line.path)
                self._openings[line.vector][line.round, line.block] = opening

    def annex(self) -> Annex:
        """Return what was read. Raises ProblemError where it was nothing."""
        if self._first is None or self._data is None:
            raise ProblemError.of(
                ErrorCode.RECORD_ANNEX,
                where="line 1" if self._first is None else "line 2",
                expected="lines of type annex and data",
                found="the end of the file",
            )
        start, end = (np.concatenate([NO_ADAPTERS.start, *self._adapters[at]]) for at in ("start", "end"))
        return Annex(
            self._first.run_token,
            self._first.challenge,
            self._data.providers_per_client,
            self._data.data_sha256,
            self._sampled,
            self._openings["update"],
            self._openings["weights"],
            AdapterValues(start, end),
            self._data.salt,
        )

    def _fits(self, line: AnyAnnexLine, number: int) -> bool:
        match line:
            case AnnexLine():
                return number == 1
            case DataLine():
                begun = number == 2 and self._first is not None
                return begun and len(line.providers_per_client) <= self._clients
            case SampledLine():
                place = len(self._sampled) + 1
                in_order = line.round == number - 2 == place <= self._max_rounds
                return in_order and len(line.sampled) <= self._clients
            case AdapterLine():
                lines = self._adapters[line.at]
                full = all(len(values) == ADAPTER_VALUES for values in lines)
                before = self._in_body and not (line.at == "start" and self._adapters["end"])
                return before and full and len(lines) < MAX_ADAPTER_NUMEL // ADAPTER_VALUES
            case OpeningLine():
                others = self._openings[line.vector]
                new = (line.round, line.block) not in others and len(others) < MAX_OPENINGS
                return self._data is not None and new

    @property
    def _in_body(self) -> bool:
        return self._data is not None and not any(self._openings.values())


def _read_line(raw: bytes, number: int) -> AnyAnnexLine:
    values = parse_object(raw, ErrorCode.RECORD_ANNEX, number, ANNEX_SCHEMA)
    line = validate(_LINE, values, ErrorCode.RECORD_ANNEX, number)
    check_canonical(raw, values_of(line), ErrorCode.RECORD_ANNEX, number)
    return line


def _encoded(values: Floats) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def _decoded(text: str, number: int) -> Floats:
    problem = _values_problem(number)
    try:
        data = base64.b64decode(text, validate=True)
        # A ValueError, where the bytes are not a whole number of floats.
        values = np.frombuffer(data, "<f4").astype(np.float32)
    except (binascii.Error, ValueError) as error:
        raise problem from error
    if not np.isfinite(values).all():
        raise problem
    return values


def _values_problem(number: int) -> ProblemError:
    return ProblemError.of(
        ErrorCode.RECORD_ANNEX,
        where=f"line {number}, values",
        expected="base64 of finite little-endian float32",
        found="something else",
    )
