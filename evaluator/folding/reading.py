"""Reading a transcript's index that a stranger wrote, and the messages that it lists."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from evaluator.communication.log import read_entries
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.lines import (
    SCHEMA,
    AnyTranscriptLine,
    TranscriptEnd,
    TranscriptMessage,
    TranscriptRound,
    TranscriptRun,
    messages_root,
)
from evaluator.messages.jobs import SERVER
from evaluator.records.canonical_lines import check_canonical, parse_object, raw_lines, validate

MAX_BYTES = 4 * 1024**2
# All of a run's distinct messages, where they are attached as a whole: a site's default.
MAX_WHOLE_BYTES = 1024**3
# What a run attaches of its messages at most, also where rounds were drawn.
MAX_MESSAGES_BYTES = 12_001 * 10**6

_LINE: TypeAdapter[TranscriptRun | TranscriptRound | TranscriptEnd] = TypeAdapter(AnyTranscriptLine)


@dataclass(frozen=True)
class Transcript:
    """An index whose lines fit together."""

    run: TranscriptRun
    rounds: list[TranscriptRound]
    end: TranscriptEnd

    @property
    def messages(self) -> Iterator[TranscriptMessage]:
        """All messages, in the order in which they were sent."""
        return (message for line in self.rounds for message in line.messages)

    @cached_property
    def first_downloads(self) -> dict[str, int]:
        """The sizes of the contents that the server sends in the first round and that are sent nowhere else."""
        first = self.rounds[0].messages if self.rounds else []
        found = {message.sha256: message.size_bytes for message in first if message.sender == SERVER}
        others = {message.sha256 for message in first if message.sender != SERVER}
        others.update(message.sha256 for line in self.rounds[1:] for message in line.messages)
        return {sha256: size for sha256, size in found.items() if sha256 not in others}

    @property
    def distinct_bytes(self) -> int:
        """The bytes of all messages, those with the same content once, without first downloads.

        A first download may cost nothing, so that its size, which is only claimed as long as it isn't attached, must
        not decide how much of the run is folded.
        """
        sizes = {message.sha256: message.size_bytes for message in self.messages}
        return sum(sizes.values()) - sum(self.first_downloads.values())


def read_transcript(path: Path) -> Transcript:
    """Read an index, under a hard cap on its size.

    Raises:
        ProblemError: (`E_TRANSCRIPT_FORMAT`) Naming the line and the field.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise _malformed("the file", f"at most {MAX_BYTES} bytes", f"{size} bytes")
    lines = _lines(path)
    number, run = next(lines, (1, None))
    if not isinstance(run, TranscriptRun):
        raise _malformed("line 1", "a line of type run", _kind(run))
    rounds: list[TranscriptRound] = []
    for number, line in lines:
        if isinstance(line, TranscriptRound) and line.round == len(rounds) + 1:
            rounds.append(line)
        elif isinstance(line, TranscriptEnd):
            if extra := next(lines, None):
                raise _malformed(f"line {number + 1}", "nothing after the end line", _kind(extra[1]))
            return _whole(Transcript(run, rounds, line), number)
        else:
            raise _malformed(f"line {number}", f"round {len(rounds) + 1}, or a line of type end", _kind(line))
    raise _malformed(f"line {number + 1}", "a line of type round or end", "the end of the file")


def check_log(transcript: Transcript, log: Path, *, clients: int, max_rounds: int) -> None:
    """Check that index and communication log list the same messages in the same order.

    Raises:
        ProblemError: (`E_TRANSCRIPT_LOG`) Naming the first message that differs; ``E_LOG_*`` for a log that isn't one.
    """
    listed = (
        (line.round, message.sender, message.receiver, message.size_bytes)
        for line in transcript.rounds
        for message in line.messages
    )
    logged = (
        (entry.round, entry.sender, entry.receiver, entry.size_bytes)
        for entry in read_entries(log, clients=clients, max_rounds=max_rounds)
    )
    for number in range(2, 2**62):
        in_index, in_log = next(listed, None), next(logged, None)
        if in_index != in_log:
            raise ProblemError.of(
                ErrorCode.TRANSCRIPT_LOG,
                where=f"communication log, line {number}",
                expected=_described(in_index),
                found=_described(in_log),
            )
        if in_index is None:
            return


class Contents(Protocol):
    """What a file of messages holds; see `evaluator.folding.opening`."""

    @property
    def messages(self) -> Iterator[TranscriptMessage]: ...

    @property
    def opened(self) -> list[int]: ...

    @property
    def state_bytes(self) -> int: ...


class MessageFile:
    """The messages of the rounds that are folded, and the states before those that were drawn.

    Raises:
        ProblemError: (`E_TRANSCRIPT_MESSAGE`) The file is longer or shorter than the index says, or a content has two
            lengths.
    """

    def __init__(self, path: Path, contents: Contents) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._states = {number: place * contents.state_bytes for place, number in enumerate(contents.opened)}
        self._state_bytes = contents.state_bytes
        end = len(self._states) * self._state_bytes
        for message in contents.messages:
            _, size = self._places.setdefault(message.sha256, (end, message.size_bytes))
            if size != message.size_bytes:
                raise _another("the index", f"one length of {message.sha256}", "two")
            end = max(end, self._places[message.sha256][0] + size)
        if (found := path.stat().st_size) != end:
            raise _another("the file", f"{end} bytes, those of the messages of the index", f"{found} bytes")

    def state(self, number: int) -> NDArray[np.float32]:
        """Return what the server had before a round whose state is in the file, float32 end to end."""
        count, begin = self._state_bytes // 4, self._states[number]
        return np.fromfile(self._path, "<f4", count=count, offset=begin).astype(np.float32, copy=False)

    def check_first(self, end: int, where: str) -> None:
        """Check the hashes of the messages that lie in the file's first `end` bytes; raises as `read`."""
        for expected, (begin, size) in self._places.items():
            if begin + size <= end:
                self._content(expected, begin, size, where)

    def read(self, message: TranscriptMessage, where: str) -> bytes:
        """Return the content of a message.

        Raises:
            ProblemError: (`E_TRANSCRIPT_MESSAGE`) It has another hash than in the index.
        """
        return self._content(message.sha256, *self._places[message.sha256], where)

    def _content(self, expected: str, begin: int, size: int, where: str) -> bytes:
        with self._path.open("rb") as file:
            file.seek(begin)
            content = file.read(size)
        if (found := sha256(content).hexdigest()) != expected:
            raise _another(where, f"a message of SHA-256 {expected}", found)
        return content


def _lines(path: Path) -> Iterator[tuple[int, TranscriptRun | TranscriptRound | TranscriptEnd]]:
    code = ErrorCode.TRANSCRIPT_FORMAT
    raws = raw_lines(path, code, first_bytes=MAX_BYTES, other_bytes=MAX_BYTES)
    for number, raw in enumerate(raws, start=1):
        values = parse_object(raw, code, number, SCHEMA)
        line = validate(_LINE, values, code, number)
        check_canonical(raw, values, code, number)
        yield number, line


def _whole(transcript: Transcript, number: int) -> Transcript:
    """Return the transcript if its last line fits the others."""
    end = transcript.end
    root = messages_root([message.leaf for message in transcript.messages])
    for field, expected, found in (
        ("rounds", len(transcript.rounds), end.rounds),
        ("messages_root", root, end.messages_root),
    ):
        if expected != found:
            raise _malformed(f"line {number}, {field}", expected, found)
    return transcript


def _kind(line: object) -> str:
    return "the end of the file" if line is None else f"a line of type {getattr(line, 'type', 'none')}"


def _described(message: tuple[int, int, int, int] | None) -> str:
    if message is None:
        return "no further message"
    number, sender, receiver, size = message
    return f"round {number}, {sender} to {receiver}, {size} bytes"


def _malformed(where: str, expected: object, found: object) -> ProblemError:
    return ProblemError.of(ErrorCode.TRANSCRIPT_FORMAT, where=where, expected=expected, found=found)


def _another(where: str, expected: object, found: object) -> ProblemError:
    return ProblemError.of(ErrorCode.TRANSCRIPT_MESSAGE, where=where, expected=expected, found=found)
