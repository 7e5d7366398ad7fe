"""Files of canonical JSON lines: each line is the RFC 8785 form of one object, and ends with a newline.

There is exactly one way to write an object, so a file that was read says exactly what its bytes say: a changed byte
is found also where it would change no value, and so is a key left out for the reader to assume. Files from strangers
are read line by line, each under a cap on its length.
"""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import rfc8785
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.untrusted_json import UntrustedJSONError, parse
from evaluator.records.lines import RecordLine

MAX_PROBLEMS = 10
# How many bytes of a line an error shows.
EXCERPT = 40

AnyKind = TypeVar("AnyKind", bound=RecordLine)


def canonical(values: Mapping[str, Any]) -> bytes:
    """Return the RFC 8785 form of `values`, without a newline."""
    return rfc8785.dumps(dict(values))


def values_of(line: RecordLine) -> dict[str, Any]:
    """Return a line's values as JSON knows them, under the names that the file has."""
    return line.model_dump(mode="json", by_alias=True)


def raw_lines(path: Path, code: ErrorCode, *, first_bytes: int, other_bytes: int) -> Iterator[bytes]:
    """Yield the file's lines with their newlines, the first of at most `first_bytes`, the others of `other_bytes`.

    Raises:
        ProblemError: (`code`) A line is longer; no more of it is read.
    """
    number, limit = 1, first_bytes
    with path.open("rb") as file:
        while raw := file.readline(limit + 1):
            if len(raw) > limit:
                raise ProblemError.of(
                    code, where=f"line {number}", expected=f"at most {limit} bytes", found="a longer line"
                )
            yield raw
            number, limit = number + 1, other_bytes


def parse_object(raw: bytes, code: ErrorCode, number: int, schema: str) -> dict[str, Any]:
    """Parse the JSON object on line `number`; the first line names its `schema`.

    Raises:
        ProblemError: (`code`) The line is not a JSON object, or belongs to another schema.
    """
    where = f"line {number}"
    try:
        values = parse(raw)
    except UntrustedJSONError as error:
        raise ProblemError.of(code, where=where, expected="a JSON object", found=error) from error
    if not isinstance(values, dict):
        raise ProblemError.of(code, where=where, expected="a JSON object", found=type(values).__name__)
    if number == 1 and values.get("schema") != schema:
        found = values.get("schema", "nothing")
        raise ProblemError.of(code, where="line 1, schema", expected=schema, found=found)
    return values


def validate(
    adapter: TypeAdapter[AnyKind], values: Mapping[str, Any], code: ErrorCode, number: int
) -> AnyKind:
    """Validate `values` and return them as a line.

    Raises:
        ProblemError: (`code`) Some fields are wrong; at most `MAX_PROBLEMS` of them are named.
    """
    try:
        return adapter.validate_python(values, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)[:MAX_PROBLEMS]
        raise ProblemError(*(_field_problem(code, number, detail) for detail in details)) from error


def check_canonical(raw: bytes, values: Mapping[str, Any], code: ErrorCode, number: int) -> None:
    """Reject a line that isn't the canonical form of `values`.

    Raises:
        ProblemError: (`code`) The line has another form; the first byte that differs is named.
    """
    expected = canonical(values) + b"\n"
    if raw != expected:
        at = next(i for i, (a, b) in enumerate(zip_longest(raw, expected)) if a != b)
        raise ProblemError.of(
            code,
            where=f"line {number}, byte {at + 1}",
            expected=f"all keys in canonical form (RFC 8785), here: {_excerpt(expected, at)}",
            found=_excerpt(raw, at),
        )


def _field_problem(code: ErrorCode, number: int, detail: ErrorDetails) -> Problem:
    # The first part of the location names the type of line.
    field = ".".join(map(str, detail["loc"][1:]))
    return Problem.of(
        code,
        where=f"line {number}, {field}" if field else f"line {number}",
        expected=detail["msg"],
        found="nothing" if detail["type"] == "missing" else detail["input"],
    )


def _excerpt(line: bytes, at: int) -> str:
    return line[at : at + EXCERPT].decode(errors="replace") or "the end of the line"
