"""The training record: written canonically, read strictly, held against the rules."""

import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.contracts import PrivacyRules
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.records import (
    EndLine,
    Noise,
    RoundLine,
    RunLine,
    Sampling,
    TrainableTensor,
    TrainingRecord,
    check_record,
    read_record,
    write_line,
)

RULES = PrivacyRules(epsilon=8, delta=1e-5)
CHECKPOINT = "c" * 64


def run_line(**changes: Any) -> RunLine:
    values: dict[str, Any] = {
        "kit_version": "0.1.0",
        "track": "fl-dp",
        "method": "fedavg-dp",
        "delta": 1e-5,
        "sampling": Sampling(type="two_stage_poisson", client_rate=0.2, provider_rate=0.5),
        "clip_norm": 0.5,
        "noise": Noise(multiplier=1.1, placement="server", release_view="aggregate"),
        "normaliser": 40.0,
        "rounds": 2,
        "base_sha256": "b" * 64,
        "trainable": [TrainableTensor(name="x", shape=[2, 3])],
        "claimed_epsilon": 8.0,
    }
    return RunLine(**values | changes)


def round_line(number: int, **changes: Any) -> RoundLine:
    values: dict[str, Any] = {
        "round": number,
        "client_rate": 0.2,
        "provider_rate": 0.5,
        "clip_norm": 0.5,
        "noise_multiplier": 1.1,
        "bytes_down": 48,
        "bytes_up": 24,
        "model_sha256": "a" * 64,
    }
    return RoundLine(**values | changes)


def record(numbers: Sequence[int] = (1, 2), **run: Any) -> TrainingRecord:
    end = EndLine(rounds=len(numbers), checkpoint_sha256=CHECKPOINT)
    lines = [round_line(number) for number in numbers]
    return TrainingRecord(run_line(**{"rounds": len(numbers)} | run), lines, end)


def text(record: TrainingRecord) -> str:
    file = io.StringIO()
    write_line(file, record.run)
    for line in record.rounds:
        write_line(file, line)
    write_line(file, record.end)
    return file.getvalue()


def changed(number: int, **changes: Any) -> str:
    """A good record's text with some keys of line `number` changed; None removes a key."""
    lines = text(record()).splitlines()
    values = json.loads(lines[number - 1]) | changes
    lines[number - 1] = json.dumps({key: value for key, value in values.items() if value is not None})
    return "\n".join(lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def refusals(path: Path, content: str | bytes, max_rounds: int = 100) -> list[Problem]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ProblemError) as refused:
        read_record(path, max_rounds=max_rounds)
    return refused.value.problems


def disagreements(record: TrainingRecord, checkpoint: str = CHECKPOINT) -> list[tuple[ErrorCode, str]]:
    with pytest.raises(ProblemError) as refused:
        check_record(record, rules=RULES, checkpoint_sha256=checkpoint)
    return [(problem.code, problem.where) for problem in refused.value.problems]


def test_what_was_written_is_read_back(path: Path) -> None:
    path.write_text(text(record()), encoding="utf-8")
    assert read_record(path, max_rounds=2) == record()


def test_lines_are_canonical() -> None:
    file = io.StringIO()
    write_line(file, EndLine(rounds=0, checkpoint_sha256=CHECKPOINT))
    write_line(file, run_line(method="méthode"))
    end, run = file.getvalue().splitlines()
    assert end == f'{{"checkpoint_sha256":"{CHECKPOINT}","rounds":0,"type":"end"}}'
    assert list(json.loads(run)) == sorted(json.loads(run))
    assert json.loads(run)["schema"] == "pfl-dp-record/1"
    assert "méthode" in run
    assert " " not in run


@given(
    st.floats(min_value=1e-300, max_value=1e300), st.floats(0, 1, exclude_min=True), st.integers(0, 2**63 - 1)
)
def test_numbers_survive_exactly(
    tmp_path_factory: pytest.TempPathFactory, norm: float, rate: float, size: int
) -> None:
    written = record()
    written.rounds[1] = round_line(2, clip_norm=norm, client_rate=rate, bytes_up=size)
    path = tmp_path_factory.mktemp("record") / "record.jsonl"
    path.write_text(text(written), encoding="utf-8")
    assert read_record(path, max_rounds=2) == written


def test_a_run_of_no_rounds_is_a_record(path: Path) -> None:
    path.write_text(text(record([])), encoding="utf-8")
    assert read_record(path, max_rounds=1).rounds == []
    check_record(record([]), rules=RULES, checkpoint_sha256=CHECKPOINT)


@pytest.mark.parametrize(
    ("line", "changes", "field"),
    [
        (1, {"schema": "pfl-dp-record/2"}, "schema"),
        (1, {"delta": "1e-5"}, "delta"),
        (1, {"delta": 0}, "delta"),
        (1, {"seed": 42}, "seed"),
        (1, {"clip_norm": -1}, "clip_norm"),
        (1, {"rounds": 2.0}, "rounds"),
        (1, {"rounds": True}, "rounds"),
        (1, {"noise": {"multiplier": 1.0, "placement": "server"}}, "noise.release_view"),
        (
            1,
            {"noise": {"multiplier": 0, "placement": "server", "release_view": "aggregate"}},
            "noise.multiplier",
        ),
        (1, {"sampling": {"type": "shuffle", "client_rate": 1, "provider_rate": 1}}, "sampling.type"),
        (
            1,
            {"sampling": {"type": "fixed_size", "client_rate": 1.5, "provider_rate": 1}},
            "sampling.client_rate",
        ),
        (1, {"trainable": []}, "trainable"),
        (1, {"trainable": [{"name": "x", "shape": [-1]}]}, "trainable.0.shape.0"),
        (1, {"base_sha256": "B" * 64}, "base_sha256"),
        (1, {"claimed_epsilon": -1}, "claimed_epsilon"),
        (2, {"providers": ["ACME"]}, "providers"),
        (2, {"sampled": 7}, "sampled"),
        (2, {"noise_multiplier": 0}, "noise_multiplier"),
        (2, {"bytes_up": 2**63}, "bytes_up"),
        (2, {"round": 0}, "round"),
        (2, {"model_sha256": None}, "model_sha256"),
        (4, {"checkpoint_sha256": "c"}, "checkpoint_sha256"),
    ],
)
def test_a_bad_field_is_refused_and_named(path: Path, line: int, changes: dict[str, Any], field: str) -> None:
    (problem,) = refusals(path, changed(line, **changes))
    assert problem.code is ErrorCode.RECORD_FORMAT
    assert problem.where == f"line {line}, {field}"
    assert problem.expected
    assert problem.found


@pytest.mark.parametrize("key", ["schema", "unit", "adjacency"])
def test_a_reader_assumes_no_defaults(path: Path, key: str) -> None:
    (problem,) = refusals(path, changed(1, **{key: None}))
    assert problem.code is ErrorCode.RECORD_FORMAT
    assert key in problem.expected


def test_every_bad_field_of_a_line_is_told(path: Path) -> None:
    problems = refusals(path, changed(2, bytes_up=-1, bytes_down="x", seed=1))
    assert {problem.where for problem in problems} == {
        "line 2, bytes_up",
        "line 2, bytes_down",
        "line 2, seed",
    }


@pytest.mark.parametrize(
    ("order", "where"),
    [
        ([], "line 1"),
        ([1, 0, 2, 3], "line 1"),
        ([0, 1, 2], "line 4"),
        ([0, 1, 0, 2, 3], "line 3"),
        ([0, 1, 2, 3, 3], "line 5"),
        ([0, 1, 2, 3, 1], "line 5"),
    ],
)
def test_lines_in_the_wrong_place_are_refused(path: Path, order: list[int], where: str) -> None:
    lines = text(record()).splitlines(keepends=True)
    (problem,) = refusals(path, "".join(lines[index] for index in order))
    assert (problem.code, problem.where) == (ErrorCode.RECORD_FORMAT, where)


HOSTILE_LINES = [
    b"",
    b"\n",
    b"[]",
    b"null",
    b"{",
    b'{"type":"other"}',
    b'{"round":1}',
    b'{"type":"round","type":"round"}',
    b'{"type":"round","clip_norm":NaN}',
    b'{"type":"round","clip_norm":-Infinity}',
    b'{"type":"round","clip_norm":1e999}',
    b'{"type":"round","bytes_up":' + b"9" * 5000 + b"}",
    b'{"type":"round","a":' + b"[" * 8000 + b"]" * 8000 + b"}",
    b'{"type":"round","a":"' + b"x" * 20_000 + b'"}',
    b'{"type":"round","' + b"\\u202e" * 2000 + b'":1}',
    b'{"type":"round","a":"\xff"}',
    b"\xff\xfe{\x00}\x00",
    b"{" + b",".join(b'"%d":1' % key for key in range(1500)) + b"}",
]


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line)[:30])
@pytest.mark.parametrize("first", [True, False])
def test_a_hostile_line_is_refused_at_once(path: Path, line: bytes, first: bool) -> None:
    good = text(record()).splitlines(keepends=True)[0].encode()
    started = time.monotonic()
    problems = refusals(path, line if first else good + line)
    assert time.monotonic() - started < 1
    assert {problem.code for problem in problems} == {ErrorCode.RECORD_FORMAT}
    assert all(str(problem).replace("\n", "").isprintable() for problem in problems)
    assert all(len(str(problem)) < 1500 for problem in problems)


def test_infinite_numbers_behind_finite_notation_are_refused(path: Path) -> None:
    content = changed(2).replace('"clip_norm": 0.5', '"clip_norm": 1e309')
    (problem,) = refusals(path, content)
    assert problem.where == "line 2, clip_norm"


def test_a_million_rounds_are_refused_before_they_are_read(path: Path) -> None:
    lines = text(record()).splitlines(keepends=True)
    started = time.monotonic()
    (problem,) = refusals(path, lines[0] + lines[1] * 1_000_000, max_rounds=100)
    assert time.monotonic() - started < 5
    assert (problem.code, problem.where) == (ErrorCode.RECORD_ROUNDS, "line 103")


def test_an_endless_line_is_refused_unread(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"type":"run","')
        file.truncate(10**9)
    started = time.monotonic()
    with pytest.raises(ProblemError):
        read_record(path, max_rounds=100)
    assert time.monotonic() - started < 1


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_code(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("record") / "record.jsonl"
    assert {problem.code for problem in refusals(path, content)} == {ErrorCode.RECORD_FORMAT}


def test_a_consistent_record_passes() -> None:
    check_record(record(), rules=RULES, checkpoint_sha256=CHECKPOINT)


@pytest.mark.parametrize(
    ("numbers", "where"), [([1, 3], "line 3"), ([1, 1], "line 3"), ([2, 1], "line 2"), ([2, 3], "line 2")]
)
def test_rounds_with_a_gap_repeated_or_out_of_order_are_found(numbers: list[int], where: str) -> None:
    assert disagreements(record(numbers)) == [(ErrorCode.RECORD_ROUNDS, where)]


def test_a_declared_number_of_rounds_that_is_not_the_real_one_is_found() -> None:
    assert disagreements(record([1, 2], rounds=3)) == [(ErrorCode.RECORD_ROUNDS, "line 1, rounds")]
    short = TrainingRecord(
        run_line(rounds=1), [round_line(1)], EndLine(rounds=2, checkpoint_sha256=CHECKPOINT)
    )
    assert disagreements(short) == [(ErrorCode.RECORD_ROUNDS, "the end line, rounds")]


def test_another_checkpoint_is_found() -> None:
    assert disagreements(record(), "d" * 64) == [
        (ErrorCode.RECORD_CHECKPOINT, "the end line, checkpoint_sha256")
    ]


@pytest.mark.parametrize(
    ("field", "value"), [("delta", 1e-4), ("unit", "document"), ("adjacency", "replace_one")]
)
def test_what_the_rules_dont_allow_is_found(field: str, value: Any) -> None:
    assert disagreements(record(**{field: value})) == [(ErrorCode.RECORD_RULES, f"line 1, {field}")]


def test_all_disagreements_are_told_together() -> None:
    codes = {code for code, _ in disagreements(record([1, 3], delta=1e-4), "d" * 64)}
    assert codes == {ErrorCode.RECORD_RULES, ErrorCode.RECORD_ROUNDS, ErrorCode.RECORD_CHECKPOINT}
