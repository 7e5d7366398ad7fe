"""The training record: what a private training run did, round by round, as JSON lines.

One `run` line says what was planned and under which rules, one `round` line for each round says what was done,
one `end` line ties the record to its checkpoint. Lines are canonical JSON: UTF-8, keys sorted, no spaces, no NaN
and no infinity. The record is public. Which providers took part, how many they were and every random seed are
private, so no line has a place for them; an unknown key is refused.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from evaluator.contracts import PrivacyRules
from evaluator.errors import ErrorCode, Problem, ProblemError, refuse
from evaluator.untrusted_json import UntrustedJSONError, parse

UNIT = "provider"
ADJACENCY = "add_remove"
MAX_RUN_LINE_BYTES = 1024**2  # the run line lists the trainable tensors
MAX_LINE_BYTES = 16 * 1024
MAX_PROBLEMS = 10

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]


class Line(BaseModel):
    """Immutable base of everything in a record. Nothing is converted: `"1"` is no number."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True
    )


class Sampling(Line):
    """Who takes part in a round.

    Attributes:
        type: `two_stage_poisson`: each client flips a coin, then each provider of a taken client flips its own.
            `fixed_size`: a fixed number of them is drawn.
        client_rate: C, a client's probability.
        provider_rate: p, the probability of a provider of a taken client.
    """

    type: Literal["two_stage_poisson", "fixed_size"]
    client_rate: Rate
    provider_rate: Rate


class Noise(Line):
    """The Gaussian noise of a round.

    Attributes:
        multiplier: σ: the noise's standard deviation divided by the clip norm.
        placement: `server`: one draw on the sum. `client_full`: a whole draw at each client.
        release_view: What an observer sees: the `aggregate` only, or each client's update (`per_client`).
    """

    multiplier: Positive
    placement: Literal["server", "client_full"]
    release_view: Literal["aggregate", "per_client"]


class TrainableTensor(Line):
    name: Name
    shape: list[Annotated[int, Field(ge=0)]]


class RunLine(Line):
    """The first line: what is trained and how it is protected.

    Attributes:
        clip_norm: L2 bound of one provider's whole update.
        normaliser: The constant by which the noised sum is divided; never the number of those who took part.
        trainable: Every tensor that leaves a client, each once.
        claimed_epsilon: ε at `delta`, as the team claims it.
    """

    type: Literal["run"] = "run"
    schema_version: Literal["pfl-dp-record/1"] = Field(default="pfl-dp-record/1", alias="schema")
    kit_version: Name
    track: Name
    method: Name
    unit: Name = UNIT
    adjacency: Name = ADJACENCY
    delta: Annotated[float, Field(gt=0, lt=1)]
    sampling: Sampling
    clip_norm: Positive
    noise: Noise
    normaliser: Positive
    rounds: Annotated[int, Field(ge=0)]
    base_sha256: Sha256
    trainable: Annotated[list[TrainableTensor], Field(min_length=1)]
    claimed_epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RoundLine(Line):
    """What one round did; a round in which nobody was sampled has its line too.

    Attributes:
        round: From 1.
        model_sha256: Hash of the global model after the round.
    """

    type: Literal["round"] = "round"
    round: Annotated[int, Field(ge=1)]
    client_rate: Rate
    provider_rate: Rate
    clip_norm: Positive
    noise_multiplier: Positive
    bytes_down: Bytes
    bytes_up: Bytes
    model_sha256: Sha256


class EndLine(Line):
    """The last line: how many rounds there were, and the hash of the checkpoint file that came out."""

    type: Literal["end"] = "end"
    rounds: Annotated[int, Field(ge=0)]
    checkpoint_sha256: Sha256


AnyLine = RunLine | RoundLine | EndLine
_LINE: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="type")])


@dataclass(frozen=True)
class TrainingRecord:
    run: RunLine
    rounds: list[RoundLine]
    end: EndLine


def write_line(file: TextIO, line: AnyLine) -> None:
    """Append one line in canonical form; the file is open for writing UTF-8."""
    values = line.model_dump(mode="json", by_alias=True)
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    file.write(text + "\n")


def read_record(path: Path, *, max_rounds: int) -> TrainingRecord:
    """Read a record of at most `max_rounds` rounds, line by line and under hard caps.

    Raises:
        ProblemError: ``E_RECORD_FORMAT`` naming the line and the field, or ``E_RECORD_ROUNDS`` where there are
            too many rounds.
    """
    lines = _lines(path, max_rounds)
    number, run = next(lines, (1, None))
    if not isinstance(run, RunLine):
        raise _misplaced(number, "a line of type run", run)
    rounds: list[RoundLine] = []
    for number, line in lines:
        if isinstance(line, RoundLine):
            rounds.append(line)
        elif isinstance(line, EndLine):
            after, extra = next(lines, (number, None))
            if extra is not None:
                raise _misplaced(after, "nothing after the end line", extra)
            return TrainingRecord(run, rounds, line)
        else:
            raise _misplaced(number, "a line of type round or end", line)
    raise _misplaced(number + 1, "a line of type round or end", None)


def check_record(record: TrainingRecord, *, rules: PrivacyRules, checkpoint_sha256: str) -> None:
    """Hold a record against itself, its checkpoint and the track's rules.

    Raises:
        ProblemError: With everything that is wrong: ``E_RECORD_RULES``, ``E_RECORD_ROUNDS``,
            ``E_RECORD_CHECKPOINT``.
    """
    problems = [
        *_rule_problems(record.run, rules),
        *_round_problems(record),
        *_checkpoint_problems(record, checkpoint_sha256),
    ]
    if problems:
        raise ProblemError(*problems)


def _lines(path: Path, max_rounds: int) -> Iterator[tuple[int, AnyLine]]:
    """The lines with their numbers, from 1, each valid by itself."""
    number = 0
    with path.open("rb") as file:
        while text := file.readline((MAX_LINE_BYTES if number else MAX_RUN_LINE_BYTES) + 1):
            number += 1
            if number > max_rounds + 2:
                raise refuse(
                    ErrorCode.RECORD_ROUNDS,
                    where=f"line {number}",
                    expected=f"at most {max_rounds} rounds",
                    found="more",
                )
            yield number, _read_line(text, number)


def _read_line(text: bytes, number: int) -> AnyLine:
    limit = MAX_LINE_BYTES if number > 1 else MAX_RUN_LINE_BYTES
    if len(text) > limit:
        raise _format_problem(f"line {number}", f"at most {limit} bytes", "a longer line")
    try:
        line = _LINE.validate_python(parse(text), by_alias=True, by_name=False)
    except UntrustedJSONError as error:
        raise _format_problem(f"line {number}", "a JSON object on one line", error) from error
    except ValidationError as error:
        details = error.errors(include_url=False)[:MAX_PROBLEMS]
        raise ProblemError(*(_field_problem(number, detail) for detail in details)) from error
    if assumed := type(line).model_fields.keys() - line.model_fields_set:
        # Defaults are for who writes a record. Who reads one assumes nothing.
        raise _format_problem(f"line {number}", f"the keys {', '.join(sorted(assumed))}", "nothing")
    return line


def _field_problem(number: int, detail: ErrorDetails) -> Problem:
    field = ".".join(map(str, detail["loc"][1:]))  # the first part names the type of line
    found = "nothing" if detail["type"] == "missing" else detail["input"]
    return _format_problem(
        f"line {number}, {field}" if field else f"line {number}", detail["msg"], found
    ).problem


def _misplaced(number: int, expected: str, line: AnyLine | None) -> ProblemError:
    found = "the end of the file" if line is None else f"a line of type {line.type}"
    return _format_problem(f"line {number}", expected, found)


def _format_problem(where: str, expected: str, found: object) -> ProblemError:
    return refuse(ErrorCode.RECORD_FORMAT, where=where, expected=expected, found=found)


def _rule_problems(run: RunLine, rules: PrivacyRules) -> Iterator[Problem]:
    for field, expected, found in (
        ("unit", UNIT, run.unit),
        ("adjacency", ADJACENCY, run.adjacency),
        ("delta", rules.delta, run.delta),
    ):
        if found != expected:
            yield refuse(
                ErrorCode.RECORD_RULES, where=f"line 1, {field}", expected=expected, found=found
            ).problem


def _round_problems(record: TrainingRecord) -> Iterator[Problem]:
    for expected, line in enumerate(record.rounds, 1):
        if line.round != expected:
            yield refuse(
                ErrorCode.RECORD_ROUNDS,
                where=f"line {expected + 1}",
                expected=f"round {expected}",
                found=f"round {line.round}",
            ).problem
            break  # what follows is shifted by the same fault
    for where, declared in (("line 1", record.run.rounds), ("the end line", record.end.rounds)):
        if declared != len(record.rounds):
            yield refuse(
                ErrorCode.RECORD_ROUNDS,
                where=f"{where}, rounds",
                expected=f"{len(record.rounds)}, the number of round lines",
                found=declared,
            ).problem


def _checkpoint_problems(record: TrainingRecord, checkpoint_sha256: str) -> Iterator[Problem]:
    if record.end.checkpoint_sha256 != checkpoint_sha256:
        yield refuse(
            ErrorCode.RECORD_CHECKPOINT,
            where="the end line, checkpoint_sha256",
            expected=checkpoint_sha256,
            found=record.end.checkpoint_sha256,
        ).problem
