"""What is checked of a file's beginning, before it is sent and once it has arrived in a draft.

So a wrong file costs neither an upload nor a submission.

The checks are the evaluator's own, and so are their errors. No request reads a whole file: of a checkpoint the header
is read and compared with the base weights, of a communication log the first megabyte. A training record and the index
of messages are read as a whole up to a few megabytes, which thousands of rounds take. Of the messages, the length of
all and the hashes of those in the first megabytes are compared with the index. A worker checks the rest after the
submission.
"""

import os
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeVar

from django.conf import settings

from docvqa_site.challenge.models import Track
from docvqa_site.challenge.references import reference_file
from docvqa_site.submissions.challenges import reject_other_answer, reject_other_messages
from docvqa_site.submissions.models import Artifact, Run, Submission
from docvqa_site.submissions.required import MAX_BYTES
from docvqa_site.submissions.signals import proof_arrived
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import current_keys
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store
from evaluator.checkpoints.header import MAX_HEADER_BYTES, Header, read_header
from evaluator.checkpoints.inspection import header_problems
from evaluator.communication.log import read_log
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.reading import MessageFile, Transcript, read_transcript
from evaluator.messages.jobs import ArtifactKind
from evaluator.records import annex, reading

Result = TypeVar("Result")

HEAD_BYTES = {
    ArtifactKind.COMMUNICATION_LOG: 2**20,
    ArtifactKind.TRAINING_RECORD: 4 * 2**20,
    ArtifactKind.TRAINING_ANNEX: annex.MAX_LINE_BYTES,
    ArtifactKind.TRANSCRIPT: MAX_BYTES[ArtifactKind.TRANSCRIPT],
    ArtifactKind.MESSAGES: 4 * 2**20,
    ArtifactKind.CODEC_FILE: MAX_BYTES[ArtifactKind.CODEC_FILE],
}
# The eight bytes with the length of a safetensors header, and some more to recognize other formats by.
PREFIX_BYTES = 64
PDF = b"%PDF-"


@dataclass(frozen=True)
class Arrival:
    """The beginning of a file that is uploaded for a draft; `head` is all of it if it is `size_bytes` long.

    `upload` is None as long as the rest of the file wasn't sent.
    """

    submission: Submission
    run: Run | None
    kind: ArtifactKind
    filename: str
    head: bytes
    size_bytes: int
    upload: Upload | None = None

    @property
    def is_whole(self) -> bool:
        return len(self.head) == self.size_bytes

    @property
    def first_line(self) -> bytes:
        """The first line with its newline, or as much of it as a line may have."""
        line, newline, _ = self.head.partition(b"\n")
        return line + newline

    @cached_property
    def transcript(self) -> Transcript:
        """The index of messages that the file is, as a whole. Raises `ProblemError` where it isn't one."""
        return _with_file(self.head, self.size_bytes, read_transcript)

    @property
    def needs_draw(self) -> bool:
        """Whether it is the index of messages that are too large to be attached as a whole."""
        is_index = self.kind is ArtifactKind.TRANSCRIPT and self.is_whole
        return is_index and self.transcript.distinct_bytes > settings.WHOLE_MESSAGES_BYTES

    @property
    def track(self) -> Track:
        return self.submission.track


def arrival_of(upload: Upload) -> Arrival | None:
    """Return the beginning of an uploaded file that isn't attached yet; None if it has no place any more.

    Raises `ProblemError` (`E_UPLOAD_STATE`) when the file was removed meanwhile.
    """
    artifact = (
        Artifact.pending.select_related("run", "submission__track", "submission__team")
        .filter(upload=upload)
        .first()
    )
    if artifact is None:
        return None
    kind = ArtifactKind(artifact.kind)
    try:
        with current_store().open(upload.store_key) as file:
            head = _read(file, kind)
    except FileNotFoundError as error:
        raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error
    return Arrival(artifact.submission, artifact.run, kind, upload.filename, head, upload.size_bytes, upload)


def check_arrival(arrival: Arrival) -> None:
    """Raise `ProblemError` with what is wrong with the file, as far as its beginning shows it."""
    check = CHECKS.get(arrival.kind)
    if check is not None:
        check(arrival)


def _read(file: BinaryIO, kind: ArtifactKind) -> bytes:
    """Return as much of a file as its check needs."""
    head = file.read(HEAD_BYTES.get(kind, PREFIX_BYTES))
    if kind is not ArtifactKind.CHECKPOINT:
        return head
    length = int.from_bytes(head[:8], "little")
    return head + (file.read(length) if length <= MAX_HEADER_BYTES else b"")


def _check_checkpoint(arrival: Arrival) -> None:
    header_bytes = int.from_bytes(arrival.head[:8], "little")
    if len(arrival.head) < 8 + header_bytes <= arrival.size_bytes and header_bytes <= MAX_HEADER_BYTES:
        # The header is longer than what a client sends before the file; it is checked when the file has arrived.
        return
    header = _with_file(arrival.head, arrival.size_bytes, read_header)
    base = _base_header(arrival.track)
    if base is not None and (problems := header_problems(header, base)):
        raise ProblemError(*problems)


def _check_log(arrival: Arrival) -> None:
    whole_lines = arrival.head if arrival.is_whole else arrival.head[: arrival.head.rfind(b"\n") + 1]
    # Without a line end there is at most one line, and it is too long.
    content = whole_lines or arrival.head
    track = arrival.track
    _with_file(
        content,
        len(content),
        lambda path: read_log(path, clients=track.clients, max_rounds=track.max_rounds),
    )


def _check_record(arrival: Arrival) -> None:
    if not arrival.is_whole:
        if b"\n" in arrival.head or len(arrival.head) >= reading.MAX_RUN_LINE_BYTES:
            reading.read_first_line(arrival.first_line)
        return
    record = _with_file(
        arrival.head,
        arrival.size_bytes,
        lambda path: reading.read_record(path, max_rounds=arrival.track.max_rounds),
    )
    reject_foreign_key(arrival.submission.team, record.end.public_key)


def reject_foreign_key(team: Team, public_key: str) -> None:
    """Raise `ProblemError` (`E_RECORD_KEY`) unless the key is one with which the team's records may be signed."""
    if not current_keys(team).filter(public_key=public_key).exists():
        raise ProblemError.of(
            ErrorCode.RECORD_KEY,
            where="public_key",
            expected="a key that your team has registered and not revoked",
            found=public_key,
        )


def _beginning(arrival: Arrival) -> str:
    """Return the first words of a file, to be shown in one line."""
    return " ".join(arrival.head[:20].decode(errors="replace").split())


def _check_annex(arrival: Arrival) -> None:
    if arrival.run:
        reject_other_answer(arrival.run, arrival.first_line)


def _check_transcript(arrival: Arrival) -> None:
    if arrival.is_whole:
        _ = arrival.transcript
    elif not arrival.head.startswith(b"{"):
        raise ProblemError.of(
            ErrorCode.TRANSCRIPT_FORMAT,
            where="line 1",
            expected="a JSON object",
            found=_beginning(arrival),
        )


def _check_messages(arrival: Arrival) -> None:
    folded = arrival.run and reject_other_messages(arrival.run, arrival.size_bytes, arrival.filename)
    if folded:
        read = len(arrival.head)
        _with_file(
            arrival.head,
            arrival.size_bytes,
            lambda path: MessageFile(path, folded).check_first(read, arrival.filename),
        )


def _check_codec(arrival: Arrival) -> None:
    try:
        # The beginning may end within a character.
        text = getincrementaldecoder("utf-8")().decode(arrival.head, final=arrival.is_whole)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_KIND,
            message="The codec isn't a Python file in UTF-8.",
            where=arrival.filename,
            expected="transcript_codec.py of the run folder",
            found="other bytes than text",
        )


def _check_proof(arrival: Arrival) -> None:
    name = arrival.filename
    if name.lower().endswith(".pdf") and not arrival.head.startswith(PDF):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_KIND,
            message="The file isn't a PDF, though its name ends in .pdf.",
            where=name,
            expected="a file that begins with %PDF-",
            found=_beginning(arrival),
            next_step="Export the proof as a PDF, or rename a Markdown file to .md and a notebook to .ipynb.",
        )
    if arrival.upload:
        # Received by `docvqa_site.proofs.shown.prepare`: what reviewers couldn't read is rejected now.
        proof_arrived.send(sender=Artifact, upload=arrival.upload)


CHECKS: dict[ArtifactKind, Callable[[Arrival], None]] = {
    ArtifactKind.CHECKPOINT: _check_checkpoint,
    ArtifactKind.COMMUNICATION_LOG: _check_log,
    ArtifactKind.TRAINING_RECORD: _check_record,
    ArtifactKind.TRAINING_ANNEX: _check_annex,
    ArtifactKind.PRIVACY_PROOF: _check_proof,
    ArtifactKind.TRANSCRIPT: _check_transcript,
    ArtifactKind.MESSAGES: _check_messages,
    ArtifactKind.CODEC_FILE: _check_codec,
}


def _base_header(track: Track) -> Header | None:
    """Return the header of the track's base weights; None on a site that doesn't have them."""
    path = reference_file(track.reference)
    return read_header(path) if path else None


def _with_file(head: bytes, size_bytes: int, read: Callable[[Path], Result]) -> Result:
    """Return what `read` makes of a file with this beginning and size; the rest is a hole, which takes no disk."""
    with tempfile.NamedTemporaryFile(prefix="pfl-arrival-") as file:
        file.write(head)
        file.flush()
        os.truncate(file.name, size_bytes)
        return read(Path(file.name))
