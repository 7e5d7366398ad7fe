"""The communication log: what is read back, and what is rejected with which code."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.communication.log import (
    MAX_MESSAGES_PER_CLIENT_AND_ROUND,
    CommunicationTotals,
    Exchange,
    LogEntry,
    append_to_log,
    read_log,
    write_log,
)
from evaluator.errors import ErrorCode, Problem, ProblemError

HEADER = "federated_round,sender,receiver,amount_of_bytes\n"


def read(path: Path, content: str | bytes, clients: int = 10, max_rounds: int = 100) -> CommunicationTotals:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_log(path, clients=clients, max_rounds=max_rounds)


def rejection(path: Path, content: str | bytes, clients: int = 10, max_rounds: int = 100) -> Problem:
    with pytest.raises(ProblemError) as rejected:
        read(path, content, clients, max_rounds)
    return rejected.value.problem


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.csv"


def test_bytes_are_added_up_by_direction(log: Path) -> None:
    totals = read(log, HEADER + "1,-1,0,100\n1,0,-1,30\n1,-1,9,100\n3,9,-1,5\n")
    assert totals == CommunicationTotals(rounds=3, messages=4, bytes_total=235, bytes_down=200, bytes_up=35)


def test_exchanges_are_reported_round_by_round(log: Path) -> None:
    reported: list[Exchange] = []
    log.write_text(HEADER + "1,-1,0,100\n1,-1,9,100\n1,0,-1,30\n1,0,-1,5\n3,9,-1,0\n")
    read_log(log, clients=10, max_rounds=100, on_exchange=reported.append)
    assert reported == [
        Exchange(
            1, 0, messages_down=1, messages_up=2, bytes_down=100, bytes_up=35, largest_down=100, largest_up=30
        ),
        Exchange(1, 9, messages_down=1, bytes_down=100, largest_down=100),
        Exchange(3, 9, messages_up=1),
    ]


def test_a_header_alone_is_the_log_of_an_untrained_model(log: Path) -> None:
    assert read(log, HEADER) == CommunicationTotals(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "content",
    [HEADER.rstrip(), "\ufeff" + HEADER + "1,-1,0,7", HEADER + "1,-1,0,7\n", HEADER + "1,-1,0,7\r\n"],
)
def test_a_byte_order_mark_and_either_line_end_are_accepted(log: Path, content: str) -> None:
    assert read(log, content).bytes_down == (7 if "1,-1" in content else 0)


def test_the_lines_of_a_spreadsheet_program_are_accepted(log: Path) -> None:
    assert read(log, (HEADER + "1,-1,0,7\n1,0,-1,8\n").replace("\n", "\r\n")).bytes_total == 15


def message(number: int, client: int, down: bool, size_bytes: int) -> LogEntry:
    return LogEntry(number, *((-1, client) if down else (client, -1)), size_bytes=size_bytes)


messages = st.builds(message, st.integers(1, 100), st.integers(0, 9), st.booleans(), st.integers(0, 10**12))
entries = st.lists(messages, max_size=30).map(lambda rows: sorted(rows, key=lambda entry: entry.round))


@given(first=entries, second=entries)
def test_what_was_written_and_appended_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, first: list[LogEntry], second: list[LogEntry]
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    later = [entry for entry in second if entry.round >= (first[-1].round if first else 1)]
    write_log(path, first)
    append_to_log(path, later)
    totals = read_log(path, clients=10, max_rounds=100)
    assert totals.messages == len(first) + len(later)
    assert totals.bytes_total == sum(entry.size_bytes for entry in first + later)
    assert totals.bytes_down == sum(entry.size_bytes for entry in first + later if entry.sender == -1)
    assert totals.bytes_total == totals.bytes_down + totals.bytes_up


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("1,-1,0,-5", ErrorCode.LOG_BYTES),
        ("1,-1,0,9999999999999999", ErrorCode.LOG_BYTES),
        ("1,-1,0," + "9" * 40, ErrorCode.LOG_BYTES),
        ("1,-1,10,5", ErrorCode.LOG_PARTY),
        ("1,-2,-1,5", ErrorCode.LOG_PARTY),
        ("1,-1,-1,5", ErrorCode.LOG_PARTY),
        ("1,3,4,5", ErrorCode.LOG_PARTY),
        ("1,-1," + "9" * 30 + ",5", ErrorCode.LOG_PARTY),
        ("0,-1,0,5", ErrorCode.LOG_ROUND),
        ("-1,-1,0,5", ErrorCode.LOG_ROUND),
        ("101,-1,0,5", ErrorCode.LOG_ROUND),
        ("9" * 30 + ",-1,0,5", ErrorCode.LOG_ROUND),
        ("1,-1,0,1e9", ErrorCode.LOG_ROW),
        ("1,-1,0,+1", ErrorCode.LOG_ROW),
        ("1,-1,0,１", ErrorCode.LOG_ROW),  # a full-width digit
        ("1,-1,0,1.0", ErrorCode.LOG_ROW),
        ("1,-1,0,1_000", ErrorCode.LOG_ROW),
        ("1,-1,0, 5", ErrorCode.LOG_ROW),
        ('1,-1,0,"5"', ErrorCode.LOG_ROW),
        ("1,-1,0,", ErrorCode.LOG_ROW),
        ("1,-1,0", ErrorCode.LOG_ROW),
        ("1,-1,0,5,6", ErrorCode.LOG_ROW),
        ("1;-1;0;5", ErrorCode.LOG_ROW),
        ("", ErrorCode.LOG_ROW),
        ("1,-1,0,5\r\r", ErrorCode.LOG_ROW),
        ("1,-1,0,5\0", ErrorCode.LOG_ROW),
    ],
)
def test_a_bad_row_is_rejected_with_its_code_and_line(log: Path, row: str, code: ErrorCode) -> None:
    problem = rejection(log, HEADER + "1,-1,0,100\n" + row + "\n")
    assert problem.code is code
    assert problem.where.startswith("line 3")
    assert problem.expected
    assert problem.found


def test_more_bytes_than_the_site_can_store_are_rejected(log: Path) -> None:
    rows = "".join(f"{number},-1,0,{'9' * 15}\n" for number in range(1, 1003))
    problem = rejection(log, HEADER + rows, max_rounds=10_000)
    assert (problem.code, problem.where) == (ErrorCode.LOG_BYTES, "round 1001")


def test_a_round_that_goes_backwards_is_rejected(log: Path) -> None:
    problem = rejection(log, HEADER + "2,-1,0,1\n1,-1,0,1\n")
    assert (problem.code, problem.where, problem.found) == (ErrorCode.LOG_ROUND, "line 3", "1")


def test_the_offending_column_is_named(log: Path) -> None:
    assert rejection(log, HEADER + "1,-1,x,1\n").where == "line 2, column receiver"


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        (HEADER.replace(",", ";"), "';'"),
        (HEADER.replace(",", "\t"), "a tab"),
        ("federated_round,sender,receiver\n", "amount_of_bytes"),
        ("1,-1,0,5\n", "federated_round"),
        ("sender,federated_round,receiver,amount_of_bytes\n", "sender,federated_round"),
        ("", "an empty file"),
        ("\n", "an empty line"),
    ],
)
def test_a_wrong_header_is_rejected_and_says_what_was_found(log: Path, header: str, hint: str) -> None:
    problem = rejection(log, header)
    assert problem.code is ErrorCode.LOG_COLUMNS
    assert hint in problem.found
    assert problem.expected == HEADER.strip()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_encoding_is_rejected(log: Path, encoding: str) -> None:
    assert rejection(log, (HEADER + "1,-1,0,5\n").encode(encoding)).code is ErrorCode.LOG_ENCODING


def test_bytes_that_are_no_utf_8_are_rejected(log: Path) -> None:
    assert rejection(log, HEADER.encode() + b"1,-1,0,\xff\n").code is ErrorCode.LOG_ENCODING


def test_ten_million_rows_are_rejected_before_they_are_read(log: Path) -> None:
    with log.open("w") as file:
        file.write(HEADER)
        file.writelines(["1,-1,0,1\n" * 100_000] * 100)
    started = time.process_time()
    with pytest.raises(ProblemError) as rejected:
        read_log(log, clients=10, max_rounds=100)
    assert time.process_time() - started < 20
    assert rejected.value.problem.code is ErrorCode.LOG_TOO_LONG
    assert rejected.value.problem.where == f"line {10 * 100 * MAX_MESSAGES_PER_CLIENT_AND_ROUND + 2}"


def test_an_endless_line_is_rejected_unread(log: Path) -> None:
    with log.open("wb") as file:
        file.write(HEADER.encode() + b"1,-1,0,")
        file.truncate(10**9)
    started = time.process_time()
    with pytest.raises(ProblemError) as rejected:
        read_log(log, clients=10, max_rounds=100)
    assert time.process_time() - started < 10
    assert rejected.value.problem.code is ErrorCode.LOG_ROW


@given(st.binary(max_size=300) | st.text("0123,-\r\n", max_size=60).map(str.encode), st.booleans())
def test_any_bytes_are_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, with_header: bool
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_bytes((HEADER.encode() if with_header else b"") + content)
    try:
        totals = read_log(path, clients=2, max_rounds=5)
    except ProblemError as rejected:
        codes = [problem.code for problem in rejected.problems]
    else:
        codes = []
        assert totals.bytes_total == totals.bytes_down + totals.bytes_up
    assert all(code.startswith("E_LOG_") for code in codes)
