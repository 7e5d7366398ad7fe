"""The communication log: which bytes a training run sent, message by message.

A CSV file whose first line is ``federated_round,sender,receiver,amount_of_bytes``. Rounds count from 1 and
never go backwards; the server is -1, clients count from 0, and every message has the server at one end. A round
in which nobody was sampled has no line, and a log without messages is that of a model that was not trained.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import SERVER

# The columns in order, each with the error code for a number that it can't hold, and with what it can.
COLUMNS = {
    "federated_round": (ErrorCode.LOG_ROUND, "a round from 1"),
    "sender": (ErrorCode.LOG_PARTY, "-1 for the server, or a client from 0"),
    "receiver": (ErrorCode.LOG_PARTY, "-1 for the server, or a client from 0"),
    "amount_of_bytes": (ErrorCode.LOG_BYTES, "a number from 0, of at most 15 digits"),
}

# A client has at most a few payloads each way in a round; more lines than that are no training run.
MAX_MESSAGES_PER_CLIENT_AND_ROUND = 8
MAX_LINE_BYTES = 128
# An exabyte; the site can't store numbers without end.
MAX_TOTAL_BYTES = 10**18

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_ROW = re.compile(rb"([0-9]{1,9}),(-1|[0-9]{1,9}),(-1|[0-9]{1,9}),([0-9]{1,15})\r?\n?")
_INTEGER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True)
class LogEntry:
    """One message of `size_bytes` bytes, sent in `round` (from 1) between the server and a client."""

    round: int
    sender: int
    receiver: int
    size_bytes: int


@dataclass
class Exchange:
    """What the server and one client sent each other in one round; `largest_down` is the largest message's size."""

    round: int
    client: int
    messages_down: int = 0
    messages_up: int = 0
    bytes_down: int = 0
    bytes_up: int = 0
    largest_down: int = 0
    largest_up: int = 0

    def add(self, entry: LogEntry) -> None:
        """Count a message of this client and round."""
        if entry.sender == SERVER:
            self.messages_down += 1
            self.bytes_down += entry.size_bytes
            self.largest_down = max(self.largest_down, entry.size_bytes)
        else:
            self.messages_up += 1
            self.bytes_up += entry.size_bytes
            self.largest_up = max(self.largest_up, entry.size_bytes)


@dataclass(frozen=True)
class CommunicationTotals:
    """What a log adds up to. `rounds` is the last round that sent anything; `bytes_down` go to the clients."""

    rounds: int
    messages: int
    bytes_total: int
    bytes_down: int
    bytes_up: int


def read_log(
    path: Path, *, clients: int, max_rounds: int, on_exchange: Callable[[Exchange], None] | None = None
) -> CommunicationTotals:
    """Check a log of a track with `clients` clients and add it up, in one pass and the memory of one round.

    Args:
        on_exchange: Called with every client's exchange of every round, in the order of rounds.

    Raises:
        ProblemError: One of the ``E_LOG_*`` codes, naming the first line that is wrong.
    """
    rounds = messages = down = up = 0
    for exchange in _exchanges(read_entries(path, clients=clients, max_rounds=max_rounds)):
        rounds = exchange.round
        messages += exchange.messages_down + exchange.messages_up
        down += exchange.bytes_down
        up += exchange.bytes_up
        if down + up > MAX_TOTAL_BYTES:
            raise ProblemError.of(
                ErrorCode.LOG_BYTES,
                where=f"round {rounds}",
                expected=f"at most {MAX_TOTAL_BYTES} bytes in all",
                found=down + up,
            )
        if on_exchange is not None:
            on_exchange(exchange)
    return CommunicationTotals(rounds, messages, down + up, down, up)


def write_log(path: Path, entries: Iterable[LogEntry]) -> None:
    """Write a new log, replacing what is there."""
    path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    append_to_log(path, entries)


def append_to_log(path: Path, entries: Iterable[LogEntry]) -> None:
    """Add messages to the end of a log that `write_log` began."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(
            f"{entry.round},{entry.sender},{entry.receiver},{entry.size_bytes}\n" for entry in entries
        )


def _exchanges(entries: Iterable[LogEntry]) -> Iterator[Exchange]:
    for number, messages in groupby(entries, key=attrgetter("round")):
        exchanges: dict[int, Exchange] = {}
        for message in messages:
            client = max(message.sender, message.receiver)
            exchanges.setdefault(client, Exchange(number, client)).add(message)
        yield from exchanges.values()


def read_entries(path: Path, *, clients: int, max_rounds: int) -> Iterator[LogEntry]:
    """Yield the messages of a log one by one, checked as by `read_log` but for their sum."""
    max_messages = clients * max_rounds * MAX_MESSAGES_PER_CLIENT_AND_ROUND
    last_round = 0
    with path.open("rb") as file:
        _check_header(file.readline(MAX_LINE_BYTES + 1))
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=2):
            if number - 1 > max_messages:
                raise ProblemError.of(
                    ErrorCode.LOG_TOO_LONG,
                    where=f"line {number}",
                    expected=f"at most {max_messages} messages: {clients} clients, {max_rounds} rounds, "
                    f"{MAX_MESSAGES_PER_CLIENT_AND_ROUND} messages a client and round",
                    found="more",
                )
            entry = _read_row(line, number)
            _check_entry(entry, number, last_round=last_round, clients=clients, max_rounds=max_rounds)
            last_round = entry.round
            yield entry


def _check_header(line: bytes) -> None:
    if line.startswith(_UTF16_BOMS) or b"\0" in line:
        raise ProblemError.of(ErrorCode.LOG_ENCODING, "line 1", "UTF-8", "UTF-16, or zero bytes")
    text = _decode(line.removeprefix(_UTF8_BOM), 1).rstrip("\r\n")
    if text == ",".join(COLUMNS):
        return
    missing = [column for column in COLUMNS if column not in text]
    delimiter = next((name for mark, name in ((";", "';'"), ("\t", "a tab")) if mark in text), "")
    if not text:
        found = "an empty line" if line else "an empty file"
    elif delimiter:
        found = f"{delimiter} between the columns: {text}"
    elif missing:
        found = f"no column {', '.join(missing)}: {text}"
    else:
        found = text
    raise ProblemError.of(ErrorCode.LOG_COLUMNS, where="line 1", expected=",".join(COLUMNS), found=found)


def _read_row(line: bytes, number: int) -> LogEntry:
    if row := _ROW.fullmatch(line):
        return LogEntry(*map(int, row.groups()))
    raise _row_problem(line, number)


def _row_problem(line: bytes, number: int) -> ProblemError:
    """Return why `line` is not a row; called only when it isn't one, so that good rows are read fast."""
    where = f"line {number}"
    if len(line) > MAX_LINE_BYTES:
        return ProblemError.of(ErrorCode.LOG_ROW, where, f"at most {MAX_LINE_BYTES} bytes", "a longer line")
    text = _decode(line, number).removesuffix("\n").removesuffix("\r")
    values = text.split(",")
    if len(values) != len(COLUMNS):
        return ProblemError.of(
            ErrorCode.LOG_ROW, where, "four numbers separated by commas", text or "nothing"
        )
    for (column, (code, expected)), value in zip(COLUMNS.items(), values, strict=True):
        place = f"{where}, column {column}"
        if not (value.isascii() and _INTEGER.fullmatch(value)):
            return ProblemError.of(ErrorCode.LOG_ROW, place, "a plain decimal number", value or "nothing")
        if not _ROW.fullmatch(",".join(value if c == column else "0" for c in COLUMNS).encode()):
            return ProblemError.of(code, where=place, expected=expected, found=value)
    raise AssertionError(f"{line!r} is a row")


def _check_entry(entry: LogEntry, number: int, *, last_round: int, clients: int, max_rounds: int) -> None:
    where = f"line {number}"
    if not max(1, last_round) <= entry.round <= max_rounds:
        raise ProblemError.of(
            ErrorCode.LOG_ROUND,
            where=where,
            expected=f"a round from {max(1, last_round)} to {max_rounds}",
            found=entry.round,
        )
    if (entry.sender == SERVER) == (entry.receiver == SERVER):
        raise ProblemError.of(
            ErrorCode.LOG_PARTY,
            where=where,
            expected=f"the server ({SERVER}) at exactly one end",
            found=f"sender {entry.sender}, receiver {entry.receiver}",
        )
    if max(entry.sender, entry.receiver) >= clients:
        raise ProblemError.of(
            ErrorCode.LOG_PARTY,
            where=where,
            expected=f"a client from 0 to {clients - 1}",
            found=max(entry.sender, entry.receiver),
        )


def _decode(line: bytes, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ProblemError.of(ErrorCode.LOG_ENCODING, f"line {number}", "UTF-8", str(error.reason)) from error
