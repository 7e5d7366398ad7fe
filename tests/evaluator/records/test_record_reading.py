"""What a stranger's record must be to be read, and what is reported where it isn't."""

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.mechanisms.sampling import Poisson
from evaluator.records.canonical_lines import canonical
from evaluator.records.chain import Chain
from evaluator.records.lines import SCHEMA, TrainableTensor
from evaluator.records.reading import read_record
from evaluator.records.signing import sign
from tests.evaluator.records.factories import MadeRun, make_record


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    return make_record(tmp_path_factory.mktemp("run"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def rejections(path: Path, content: bytes, max_rounds: int = 100) -> list[Problem]:
    path.write_bytes(content)
    with pytest.raises(ProblemError) as rejected:
        read_record(path, max_rounds=max_rounds)
    return rejected.value.problems


def resealed(made: MadeRun, number: int, **changes: Any) -> bytes:
    """The record with some values of a line changed, None to drop one, chained and signed again."""
    chain = Chain(SCHEMA)
    lines = []
    for index, raw in enumerate(made.record.read_bytes().splitlines(), 1):
        values = json.loads(raw)
        dropped = {"h", "signature"}
        if index == number:
            values |= changes
            dropped |= {key for key, value in changes.items() if value is None}
        values = {key: value for key, value in values.items() if key not in dropped}
        head = chain.append(values)
        seal = {"h": head, "signature": sign(made.key, head)} if values.get("type") == "end" else {"h": head}
        lines.append(canonical(values | seal) + b"\n")
    return b"".join(lines)


def test_what_was_written_is_read_back(made: MadeRun) -> None:
    record = read_record(made.record, max_rounds=2)
    assert [line.round for line in record.rounds] == [1, 2]
    assert record.run.run_token == "token-for-one-run-only"
    before_the_end = json.loads(made.record.read_bytes().splitlines()[-2])["h"]
    assert record.own_challenge == before_the_end


def test_a_tensor_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="named once"):
        make_record(tmp_path, trainable=[TrainableTensor(name="bias", shape=[9])] * 2)


def test_a_scale_of_adapters_needs_adapters(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="null without any"):
        make_record(tmp_path, lora_scale=2.0)


def test_a_run_of_no_rounds_is_a_record(tmp_path: Path) -> None:
    run = make_record(tmp_path, rounds=0)
    assert read_record(run.record, max_rounds=1).rounds == []


def test_resealing_nothing_gives_the_same_record(made: MadeRun) -> None:
    assert resealed(made, 0) == made.record.read_bytes()


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_flipped_bit_is_found_wherever_it_is(
    made: MadeRun, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(made.record.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    problems = rejections(tmp_path_factory.getbasetemp() / "flipped.jsonl", bytes(content))
    assert {problem.code for problem in problems} <= {
        ErrorCode.RECORD_FORMAT,
        ErrorCode.RECORD_CHAIN,
        ErrorCode.RECORD_SIGNATURE,
    }


@pytest.mark.parametrize(
    ("order", "code", "where"),
    [
        ([1, 2, 3], ErrorCode.RECORD_FORMAT, "line 1"),
        ([0, 2, 3], ErrorCode.RECORD_CHAIN, "line 2, h"),
        ([0, 2, 1, 3], ErrorCode.RECORD_CHAIN, "line 2, h"),
        ([0, 1, 1, 2, 3], ErrorCode.RECORD_CHAIN, "line 3, h"),
        ([0, 1, 2], ErrorCode.RECORD_FORMAT, "line 4"),
        ([0, 1, 3], ErrorCode.RECORD_CHAIN, "line 3, h"),
        ([0, 1, 2, 3, 3], ErrorCode.RECORD_CHAIN, "line 5, h"),
        ([0], ErrorCode.RECORD_FORMAT, "line 2"),
        ([], ErrorCode.RECORD_FORMAT, "line 1"),
    ],
)
def test_a_dropped_moved_or_repeated_line_is_found(
    made: MadeRun, path: Path, order: list[int], code: ErrorCode, where: str
) -> None:
    lines = made.record.read_bytes().splitlines(keepends=True)
    (problem,) = rejections(path, b"".join(lines[index] for index in order))
    assert problem.code is code
    assert problem.where.startswith(where)


def test_lines_in_the_wrong_place_are_rejected_though_their_chain_holds(made: MadeRun, path: Path) -> None:
    lines = [json.loads(raw) for raw in made.record.read_bytes().splitlines()]
    for order, where in (([1, 2, 3], "line 1"), ([0, 0, 3], "line 2"), ([0, 1, 3, 2], "line 4")):
        chain, content = Chain(SCHEMA), b""
        for index in order:
            values = {key: value for key, value in lines[index].items() if key not in ("h", "signature")}
            head = chain.append(values)
            seal = {"signature": sign(made.key, head)} if index == 3 else {}
            content += canonical(values | {"h": head} | seal) + b"\n"
        (problem,) = rejections(path, content)
        assert problem.code is ErrorCode.RECORD_FORMAT
        assert problem.where.startswith(where)


def test_another_keys_signature_is_rejected(made: MadeRun, path: Path) -> None:
    *lines, last = made.record.read_bytes().splitlines(keepends=True)
    values = json.loads(last)
    values["signature"] = sign(Ed25519PrivateKey.generate(), values["h"])
    (problem,) = rejections(path, b"".join(lines) + canonical(values) + b"\n")
    assert problem.code is ErrorCode.RECORD_SIGNATURE


@pytest.mark.parametrize("signature", [None, "", 7, "0" * 128, "nothing", "A" * 128, "\ud800", [1]])
def test_what_is_no_signature_is_rejected(made: MadeRun, path: Path, signature: object) -> None:
    *lines, last = made.record.read_bytes().splitlines(keepends=True)
    content = json.dumps(json.loads(last) | {"signature": signature}, sort_keys=True, separators=(",", ":"))
    (problem,) = rejections(path, b"".join(lines) + content.encode() + b"\n")
    assert problem.code is ErrorCode.RECORD_SIGNATURE


def test_a_signature_in_capitals_is_rejected(made: MadeRun, path: Path) -> None:
    *lines, last = made.record.read_bytes().splitlines(keepends=True)
    values = json.loads(last)
    values["signature"] = values["signature"].upper()
    (problem,) = rejections(path, b"".join(lines) + canonical(values) + b"\n")
    assert problem.code is ErrorCode.RECORD_SIGNATURE


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ((b'"clients":2', b'"clients": 2'), "line 1, byte"),
        ((b'"delta":0.00001', b'"delta":1e-5'), "line 1, byte"),
        ((b'"clip_norm":0.5', b'"clip_norm":0.50'), "line 1, byte"),
        ((b'"method":"fl', b'"method":"\\u0066l'), "line 1, byte"),
        ((b"}\n", b"}\r\n"), "line 1, byte"),
        ((b"}\n", b"} \n"), "line 1, byte"),
    ],
)
def test_the_same_values_written_otherwise_are_rejected(
    made: MadeRun, path: Path, change: tuple[bytes, bytes], where: str
) -> None:
    content = made.record.read_bytes()
    assert change[0] in content
    (problem,) = rejections(path, content.replace(*change, 1))
    assert problem.code is ErrorCode.RECORD_FORMAT
    assert problem.where.startswith(where)


def test_the_last_line_ends_with_a_newline(made: MadeRun, path: Path) -> None:
    (problem,) = rejections(path, made.record.read_bytes()[:-1])
    assert problem.code is ErrorCode.RECORD_FORMAT


@pytest.mark.parametrize(
    ("line", "changes", "field"),
    [
        (1, {"delta": "1e-5"}, "delta"),
        (1, {"delta": 0}, "delta"),
        (1, {"seed": 42}, "seed"),
        (1, {"clip_norm": -1}, "clip_norm"),
        (1, {"clip_norm": 1e308}, "clip_norm"),
        (1, {"claimed_epsilon": 1e300}, "claimed_epsilon"),
        (1, {"clip_norm": 1e-308}, "clip_norm"),
        (1, {"rounds": 0.5}, "rounds"),
        (1, {"rounds": True}, "rounds"),
        (1, {"rounds": -1}, "rounds"),
        (1, {"clients": 0}, "clients"),
        (1, {"noise": {"placement": "server"}}, "noise.multiplier"),
        (1, {"noise": {"multiplier": 1, "placement": "nobody"}}, "noise.placement"),
        (1, {"sampling": {"type": "shuffle"}}, "sampling"),
        (1, {"sampling": {"type": "poisson", "provider_rate": 1.5}}, "sampling.poisson"),
        (1, {"trainable": []}, "trainable"),
        (1, {"trainable": [{"name": "x", "shape": [-1]}]}, "trainable.0.shape.0"),
        (1, {"trainable": [{"name": "x", "shape": [1] * 9}]}, "trainable.0.shape"),
        (1, {"base_sha256": "B" * 64}, "base_sha256"),
        (1, {"run_token": "short"}, "run_token"),
        (1, {"claimed_epsilon": -1}, "claimed_epsilon"),
        (2, {"providers": ["ACME"]}, "providers"),
        (2, {"noise_multiplier": 0}, "noise_multiplier"),
        (2, {"clients": -2}, "clients"),
        (2, {"bytes_up": -1}, "bytes_up"),
        (2, {"round": 0}, "round"),
        (1, {"rounds": 4097}, "rounds"),
        (1, {"server": {"rule": "momentum", "learning_rate": 1.0}}, "server.momentum.momentum"),
        (1, {"server": {"rule": "mean", "learning_rate": 1.0}}, "server"),
        (1, {"lora_scale": "2"}, "lora_scale"),
        (2, {"weights_root": None}, "weights_root"),
        (4, {"checkpoint_sha256": "c"}, "checkpoint_sha256"),
        (4, {"public_key": None}, "public_key"),
    ],
)
def test_a_bad_field_is_rejected_and_named_though_signed(
    made: MadeRun, path: Path, line: int, changes: dict[str, Any], field: str
) -> None:
    problems = rejections(path, resealed(made, line, **changes))
    assert {problem.code for problem in problems} == {ErrorCode.RECORD_FORMAT}
    assert problems[0].where.startswith(f"line {line}, {field}")
    assert problems[0].expected
    assert problems[0].found


@pytest.mark.parametrize("shape", [[0], [2**31 - 1] * 8])
def test_an_empty_or_impossible_weight_vector_is_rejected(
    made: MadeRun, path: Path, shape: list[int]
) -> None:
    (problem,) = rejections(path, resealed(made, 1, trainable=[{"name": "x", "shape": shape}]))
    assert problem.code is ErrorCode.RECORD_FORMAT


@pytest.mark.parametrize("line", [1, 2, 4])
def test_no_key_may_be_left_to_the_readers_defaults(made: MadeRun, path: Path, line: int) -> None:
    keys = json.loads(made.record.read_bytes().splitlines()[line - 1]).keys() - {
        "h",
        "signature",
        "run_token",
    }
    for key in keys:
        problems = rejections(path, resealed(made, line, **{key: None}))
        assert {problem.code for problem in problems} == {ErrorCode.RECORD_FORMAT}, key


def test_nested_defaults_are_required_too(made: MadeRun, path: Path) -> None:
    noise = {"multiplier": 1.1, "placement": "server", "secure_aggregation": "none"}
    (problem,) = rejections(path, resealed(made, 1, noise=noise))
    assert problem.code is ErrorCode.RECORD_FORMAT
    assert "colluding_clients" in problem.expected


@pytest.mark.parametrize("schema", ["pfl-dp-record/2", None, 7, ["x"]])
def test_a_record_of_another_version_is_rejected_with_the_expected_one(
    made: MadeRun, path: Path, schema: object
) -> None:
    (problem,) = rejections(path, resealed(made, 1, schema=schema))
    assert (problem.code, problem.expected) == (ErrorCode.RECORD_FORMAT, "pfl-dp-record/3")


HOSTILE_LINES = [
    b"",
    b"\n",
    b"[]",
    b"null",
    b"{",
    b'{"type":"other"}',
    b'{"round":1}',
    b'{"type":["round"]}',
    b'{"type":"round","type":"round"}',
    b'{"type":"round","clip_norm":NaN}',
    b'{"type":"round","clip_norm":-Infinity}',
    b'{"type":"round","clip_norm":1e999}',
    b'{"type":"round","bytes_up":' + b"9" * 5000 + b"}",
    b'{"type":"round","clip_norm":' + b"9" * 4000 + b"}",
    b'{"type":"round","a":' + b"[" * 8000 + b"]" * 8000 + b"}",
    b'{"type":"round","a":"' + b"x" * 20_000 + b'"}',
    b'{"type":"round","' + b"\\u202e" * 2000 + b'":1}',
    b'{"type":"round","h":"\\ud800"}',
    b'{"type":"round","h":{"a":NaN}}',
    b'{"type":"round","a":"\xff"}',
    b"\xff\xfe{\x00}\x00",
    b"{" + b",".join(b'"%d":1' % key for key in range(1500)) + b"}",
]


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line)[:30])
@pytest.mark.parametrize("first", [True, False])
def test_a_hostile_line_is_rejected_at_once(made: MadeRun, path: Path, line: bytes, first: bool) -> None:
    good = made.record.read_bytes().splitlines(keepends=True)[0]
    started = time.process_time()
    problems = rejections(path, line if first else good + line)
    assert time.process_time() - started < 10
    assert {problem.code for problem in problems} == {ErrorCode.RECORD_FORMAT}
    assert all(str(problem).replace("\n", "").isprintable() for problem in problems)
    assert all(len(str(problem)) < 1500 for problem in problems)


def test_a_seal_of_another_type_is_rejected(made: MadeRun, path: Path) -> None:
    for seal in (None, 7, 10**400, ["x"], "\ud800"):
        first = json.loads(made.record.read_bytes().splitlines()[0]) | {"h": seal}
        (problem,) = rejections(path, json.dumps(first, sort_keys=True).encode() + b"\n")
        assert problem.code is ErrorCode.RECORD_CHAIN


def test_a_million_rounds_are_rejected_before_they_are_read(made: MadeRun, path: Path) -> None:
    run = json.loads(made.record.read_bytes().splitlines()[0])
    line = json.loads(made.record.read_bytes().splitlines()[1])
    chain, content = Chain(SCHEMA), []
    for values in [run, *({**line, "round": number} for number in range(1, 202))]:
        values = {key: value for key, value in values.items() if key != "h"}
        content.append(canonical(values | {"h": chain.append(values)}) + b"\n")
    path.write_bytes(b"".join(content) + content[-1] * 1_000_000)
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(ProblemError) as rejected:
        read_record(path, max_rounds=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rejected.value.problem.code is ErrorCode.RECORD_ROUNDS
    assert rejected.value.problem.where == "line 102"
    assert time.process_time() - started < 20
    assert peak < 10 * 1024**2


def test_an_endless_line_is_rejected_unread(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"type":"run","')
        file.truncate(10**9)
    started = time.process_time()
    with pytest.raises(ProblemError) as rejected:
        read_record(path, max_rounds=100)
    assert rejected.value.problem.code is ErrorCode.RECORD_FORMAT
    assert time.process_time() - started < 10


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_rejected_with_a_code(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    assert {problem.code for problem in rejections(path, content)} == {ErrorCode.RECORD_FORMAT}


@settings(max_examples=50, deadline=None)
@given(
    st.floats(min_value=1e-12, max_value=1e12),
    st.floats(min_value=1e-9, max_value=1),
    st.text(min_size=1, max_size=20),
)
def test_numbers_and_names_survive_exactly(
    tmp_path_factory: pytest.TempPathFactory, norm: float, rate: float, name: str
) -> None:
    made = make_record(
        tmp_path_factory.getbasetemp() / "exact",
        clip_norm=norm,
        method=name,
        sampling=Poisson(client_rate=0.5, provider_rate=rate),
    )
    run = read_record(made.record, max_rounds=2).run
    assert isinstance(run.sampling, Poisson)
    assert (run.clip_norm, run.sampling.provider_rate, run.method) == (norm, rate, name)


def with_resumes(made: MadeRun, *places: tuple[int, int, bool]) -> bytes:
    """The record with a resume line before the line of each index; of each the round and whether it had begun."""
    chain, lines = Chain(SCHEMA), []
    for index, raw in enumerate(made.record.read_bytes().splitlines()):
        values = {key: value for key, value in json.loads(raw).items() if key not in ("h", "signature")}
        resumed = [
            {"type": "resume", "round": number, "begun": begun, "claimed_epsilon": 2.5}
            for at, number, begun in places
            if at == index
        ]
        for line in [*resumed, values]:
            head = chain.append(line)
            seal = {"h": head, "signature": sign(made.key, head)} if line["type"] == "end" else {"h": head}
            lines.append(canonical(line | seal) + b"\n")
    return b"".join(lines)


def test_a_run_that_was_interrupted_says_where_it_was_resumed(made: MadeRun, path: Path) -> None:
    path.write_bytes(with_resumes(made, (1, 1, False), (2, 2, True), (2, 2, False), (3, 3, False)))
    record = read_record(path, max_rounds=2)
    assert [(line.round, line.begun) for line in record.resumes] == [
        (1, False),
        (2, True),
        (2, False),
        (3, False),
    ]
    assert [line.round for line in record.rounds] == [1, 2]
    assert record.claimed_epsilon == 2.5 != record.run.claimed_epsilon


@pytest.mark.parametrize(
    ("place", "line"), [((2, 1, True), "line 3"), ((1, 2, False), "line 2"), ((3, 3, True), "line 5")]
)
def test_a_run_resumes_at_the_next_round_and_repeats_one_that_was_begun(
    made: MadeRun, path: Path, place: tuple[int, int, bool], line: str
) -> None:
    (problem,) = rejections(path, with_resumes(made, place))
    assert problem.code is ErrorCode.RECORD_FORMAT
    assert problem.where == line


def test_breaks_without_end_are_rejected(made: MadeRun, path: Path) -> None:
    (problem,) = rejections(path, with_resumes(made, *[(1, 1, False)] * 1001))
    assert problem.code is ErrorCode.RECORD_ROUNDS
    assert "breaks" in problem.expected
