"""What a stranger's annex must be to be read."""

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.records.annex import AdapterValues, Annex, read_annex, write_annex
from evaluator.records.canonical_lines import canonical
from evaluator.records.certificate import BLOCK, MAX_OPENINGS, open_blocks

U = np.random.default_rng(0).standard_normal(3 * BLOCK).astype(np.float32)
ANNEX = Annex(
    run_token="token-for-one-run-only",
    challenge="c" * 64,
    providers_per_client={0: 20, 10: 7},
    data_sha256="d" * 64,
    sampled=[{0: 3}, {}, {0: 0, 10: 7}],
    openings={(number, block): open_blocks(U, [block])[0] for number in (1, 3) for block in (0, 2)},
    weights={(3, 1): open_blocks(U, [1])[0]},
    adapters=AdapterValues(start=np.arange(9000, dtype=np.float32), end=-np.arange(9000, dtype=np.float32)),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "annex.jsonl"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("annex") / "annex.jsonl"
    write_annex(path, ANNEX)
    return path.read_bytes()


def rejection(path: Path, content: bytes, *, clients: int = 11, max_rounds: int = 100) -> Problem:
    path.write_bytes(content)
    with pytest.raises(ProblemError) as rejected:
        read_annex(path, clients=clients, max_rounds=max_rounds)
    assert {problem.code for problem in rejected.value.problems} == {ErrorCode.RECORD_ANNEX}
    return rejected.value.problem


def test_what_was_written_is_read_back(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    read = read_annex(path, clients=2, max_rounds=3)
    assert (read.run_token, read.challenge, read.salt) == (ANNEX.run_token, ANNEX.challenge, ANNEX.salt)
    assert (read.providers_per_client, read.sampled) == (ANNEX.providers_per_client, ANNEX.sampled)
    assert read.data_sha256 == ANNEX.data_sha256
    for found, written in ((read.openings, ANNEX.openings), (read.weights, ANNEX.weights)):
        assert found.keys() == written.keys()
        for place, opening in found.items():
            assert (opening.block, opening.path) == (written[place].block, written[place].path)
            assert np.array_equal(opening.values, written[place].values)
    assert np.array_equal(read.adapters.start, ANNEX.adapters.start)
    assert np.array_equal(read.adapters.end, ANNEX.adapters.end)


def test_the_hash_of_an_annex_reveals_nothing_of_its_counts() -> None:
    first, second = (
        Annex(None, "c" * 64, {0: 20}, "d" * 64, sampled=[{0: 3}], openings={}, weights={}) for _ in range(2)
    )
    assert first.salt != second.salt
    assert first.body_sha256 != second.body_sha256


def test_the_body_is_all_but_the_first_line_and_the_openings(content: bytes) -> None:
    body = b"".join(content.splitlines(keepends=True)[1:9])
    assert ANNEX.body_sha256 == hashlib.sha256(body).hexdigest()


def test_the_body_stays_when_the_annex_answers_another_challenge(path: Path, content: bytes) -> None:
    answered = replace(ANNEX, challenge="d" * 64, openings={}, weights={})
    write_annex(path, answered)
    assert path.read_bytes().splitlines()[1:] == content.splitlines()[1:9]
    assert read_annex(path, clients=2, max_rounds=3).body_sha256 == ANNEX.body_sha256


@pytest.mark.parametrize(
    "order",
    [
        [],
        [0],
        [1, 2, 3, 4],
        [0, 2, 3, 4],
        [0, 0, 1, 2, 3, 4],
        [0, 1, 1, 2, 3, 4],
        [0, 1, 3, 2, 4],
        [0, 1, 2, 4],
        [0, 1, 2, 2, 3],
        [0, 9, 1, 2, 3, 4],
        [0, 1, 9, 2, 3, 4],
        [0, 1, 2, 3, 9, 4],
        [0, 1, 2, 3, 4, 10, 10],
        [5],
        [0, 1, 2, 3, 4, 6, 6],
        [0, 1, 2, 3, 4, 8, 7],
        [0, 1, 2, 3, 4, 7, 5],
        [0, 1, 2, 3, 4, 9, 5],
        [0, 1, 2, 3, 4, 9, 9],
    ],
)
def test_lines_in_the_wrong_place_are_rejected(path: Path, content: bytes, order: list[int]) -> None:
    lines = content.splitlines(keepends=True)
    rejection(path, b"".join(lines[index] for index in order))


@pytest.mark.parametrize(
    ("line", "changes", "where"),
    [
        (0, {"schema": "pfl-dp-annex/1"}, "line 1, schema"),
        (0, {"challenge": None}, "line 1, challenge"),
        (0, {"challenge": "C" * 64}, "line 1, challenge"),
        (1, {"providers_per_client": {"-1": 3}}, "line 2, providers_per_client"),
        (1, {"providers_per_client": {"00": 3}}, "line 2, byte"),
        (1, {"providers_per_client": {"a": 3}}, "line 2, providers_per_client"),
        (2, {"sampled": {"0": -1}}, "line 3, sampled"),
        (2, {"sampled": {"0": 0.5}}, "line 3, sampled"),
        (2, {"sampled": {"0": "1"}}, "line 3, sampled"),
        (2, {"names": ["ACME"]}, "line 3, names"),
        (9, {"values": "AAAA"}, "line 10, values"),
        (9, {"values": "?"}, "line 10, values"),
        (9, {"values": "AADAfw=="}, "line 10, values"),  # NaN
        (9, {"values": "A" * 9000}, "line 10, values"),
        (9, {"path": ["x"]}, "line 10, path"),
        (9, {"path": ["0" * 64] * 33}, "line 10, path"),
        (9, {"block": -1}, "line 10, block"),
        (9, {"vector": "noise"}, "line 10, vector"),
    ],
)
def test_a_bad_field_is_rejected_and_named(
    path: Path, content: bytes, line: int, changes: dict[str, object], where: str
) -> None:
    lines = content.splitlines(keepends=True)
    lines[line] = canonical(json.loads(lines[line]) | changes) + b"\n"
    assert rejection(path, b"".join(lines)).where.startswith(where)


def test_more_clients_or_rounds_than_the_track_has_are_rejected(path: Path, content: bytes) -> None:
    assert rejection(path, content, clients=1).where == "line 2"
    assert rejection(path, content, max_rounds=2).where == "line 5"


def test_a_file_that_is_too_large_is_rejected_unread(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.truncate(10**10)
    started = time.process_time()
    with pytest.raises(ProblemError) as rejected:
        read_annex(path, clients=2, max_rounds=3)
    assert rejected.value.problem.code is ErrorCode.RECORD_ANNEX
    assert time.process_time() - started < 10


def test_too_many_openings_are_rejected(path: Path, content: bytes) -> None:
    lines = content.splitlines(keepends=True)
    opening = json.loads(lines[9]) | {"values": "", "path": []}
    more = [canonical(opening | {"block": block}) + b"\n" for block in range(MAX_OPENINGS + 1)]
    assert rejection(path, b"".join(lines[:5] + more)).where == f"line {MAX_OPENINGS + 6}"


def test_too_many_coordinates_of_adapters_are_rejected(path: Path, content: bytes) -> None:
    lines = content.splitlines(keepends=True)
    assert rejection(path, b"".join(lines[:5] + [lines[5]] * 257)).where == "line 262"


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_rejected_with_a_code(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    rejection(tmp_path_factory.getbasetemp() / "any_annex.jsonl", content)
