"""Reading a training record that a stranger wrote.

A record that can be read consists of the lines that its key signed, in their order, and of nothing else. Whose key
that is, and whether the lines are true, is not decided here: see `checks`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.canonical_lines import check_canonical, parse_object, raw_lines, validate, values_of
from evaluator.records.chain import Chain
from evaluator.records.lines import (
    SCHEMA,
    AnyLine,
    EndLine,
    ResumeLine,
    RoundLine,
    RunLine,
    Sha256,
    Signature,
    TrainingRecord,
)
from evaluator.records.signing import verifies

# The run line lists the trainable tensors.
MAX_RUN_LINE_BYTES = 1024**2
MAX_LINE_BYTES = 16 * 1024
MAX_RESUMES = 1000

_LINE: TypeAdapter[RunLine | RoundLine | ResumeLine | EndLine] = TypeAdapter(AnyLine)
# The keys that are added to a line, and the error code for a wrong value.
_SEALS: dict[str, tuple[TypeAdapter[str], ErrorCode]] = {
    "h": (TypeAdapter(Sha256), ErrorCode.RECORD_CHAIN),
    "signature": (TypeAdapter(Signature), ErrorCode.RECORD_SIGNATURE),
}


def read_record(path: Path, *, max_rounds: int) -> TrainingRecord:
    """Read a record of at most `max_rounds` rounds, under hard caps on its lines.

    Raises:
        ProblemError: ``E_RECORD_FORMAT`` naming the line and the field; ``E_RECORD_CHAIN`` naming the first line whose
            hash doesn't follow; ``E_RECORD_SIGNATURE``; ``E_RECORD_ROUNDS`` where there are too many rounds.
    """
    lines = _links(path)
    first = next(lines, None)
    if first is None or not isinstance(first.line, RunLine):
        raise _misplaced(1, "a line of type run", first)
    rounds: list[RoundLine] = []
    resumes: list[ResumeLine] = []
    for link in lines:
        if isinstance(link.line, RoundLine):
            if len(rounds) == max_rounds:
                raise _too_many(link.number, f"at most {max_rounds} rounds")
            rounds.append(link.line)
        elif isinstance(link.line, ResumeLine):
            if link.line.round != len(rounds) + 1:
                raise _misplaced(link.number, f"a line that resumes at round {len(rounds) + 1}", link)
            if len(resumes) == MAX_RESUMES:
                raise _too_many(link.number, f"at most {MAX_RESUMES} breaks")
            resumes.append(link.line)
        elif isinstance(link.line, EndLine):
            if resumes and resumes[-1].begun and resumes[-1].round > len(rounds):
                raise _misplaced(link.number, f"round {resumes[-1].round}, which was restarted", link)
            if extra := next(lines, None):
                raise _misplaced(link.number + 1, "nothing after the end line", extra)
            return TrainingRecord(first.line, rounds, link.line, link.before, resumes)
        else:
            raise _misplaced(link.number, "a line of type round, resume or end", link)
    raise _misplaced(len(rounds) + len(resumes) + 2, "a line of type round, resume or end", None)


def read_first_line(raw: bytes) -> RunLine:
    """Read the first line of a record, with its newline.

    Raises:
        ProblemError: ``E_RECORD_FORMAT`` naming the field, or ``E_RECORD_CHAIN``.
    """
    line = _read_line(raw, 1, Chain(SCHEMA))
    if not isinstance(line, RunLine):
        raise _misplaced(1, "a line of type run", _Link(1, line, ""))
    return line


@dataclass(frozen=True)
class _Link:
    """A line that follows from those before it, after which the chain's head was `before`."""

    number: int
    line: RunLine | RoundLine | ResumeLine | EndLine
    before: str


def _links(path: Path) -> Iterator[_Link]:
    chain = Chain(SCHEMA)
    lines = raw_lines(
        path, ErrorCode.RECORD_FORMAT, first_bytes=MAX_RUN_LINE_BYTES, other_bytes=MAX_LINE_BYTES
    )
    for number, raw in enumerate(lines, 1):
        before = chain.head
        yield _Link(number, _read_line(raw, number, chain), before)


def _read_line(raw: bytes, number: int, chain: Chain) -> RunLine | RoundLine | ResumeLine | EndLine:
    """Read one line, and append it to the chain.

    Raises:
        ProblemError: The line is not valid, its hash doesn't follow, or its signature doesn't hold.
    """
    values = parse_object(raw, ErrorCode.RECORD_FORMAT, number, SCHEMA)
    names = ("h", "signature") if values.get("type") == "end" else ("h",)
    seal = {name: values.pop(name, "nothing") for name in names}
    line = validate(_LINE, values, ErrorCode.RECORD_FORMAT, number)
    for name, found in seal.items():
        _check_seal(name, found, number)
    check_canonical(raw, values_of(line) | seal, ErrorCode.RECORD_FORMAT, number)
    head = chain.append(values_of(line))
    if seal["h"] != head:
        raise ProblemError.of(
            ErrorCode.RECORD_CHAIN, where=f"line {number}, h", expected=head, found=seal["h"]
        )
    if isinstance(line, EndLine) and not verifies(line.public_key, head, seal["signature"]):
        raise ProblemError.of(
            ErrorCode.RECORD_SIGNATURE,
            where=f"line {number}, signature",
            expected=f"the signature of {line.public_key}",
            found=seal["signature"],
        )
    return line


def _check_seal(name: str, found: object, number: int) -> None:
    adapter, code = _SEALS[name]
    try:
        adapter.validate_python(found)
    except ValidationError as error:
        raise ProblemError.of(
            code, where=f"line {number}, {name}", expected=error.errors()[0]["msg"], found=found
        ) from error


def _too_many(number: int, expected: str) -> ProblemError:
    return ProblemError.of(ErrorCode.RECORD_ROUNDS, where=f"line {number}", expected=expected, found="more")


def _misplaced(number: int, expected: str, link: _Link | None) -> ProblemError:
    found = "the end of the file" if link is None else f"a line of type {link.line.type}"
    return ProblemError.of(ErrorCode.RECORD_FORMAT, where=f"line {number}", expected=expected, found=found)
