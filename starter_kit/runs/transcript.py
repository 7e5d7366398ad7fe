"""Writing a run's transcript: its messages as they are sent, and the index with which the evaluator folds them.

    transcript.jsonl        the index: see `evaluator.folding.lines`
    messages.bin            the messages, each distinct content once
    transcript_start.f32    what every party started from, to compute the state before a round that the site draws
    transcript_codec.py     the file of a codec of one's own

A message is appended when it is sent or arrives, a round's line when the round is recorded: a run that is resumed cuts
both files back to its whole rounds. All messages stay on disk, for the site may draw any round of a large run; where
the disk has no room for them, the bytes are declared. A private run has no transcript, as nothing protects a single
update.
"""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from evaluator.communication.log import LogEntry
from evaluator.folding.folding import Floats, state_sha256
from evaluator.folding.lines import (
    MAX_CODEC_BYTES,
    MAX_SETTINGS,
    BuiltIn,
    CodecTerms,
    KitPlugin,
    OwnFile,
    TranscriptEnd,
    TranscriptMessage,
    TranscriptRound,
    TranscriptRun,
    messages_root,
)
from evaluator.folding.reading import MAX_BYTES, MAX_WHOLE_BYTES
from evaluator.folding.server_step import SERVER_VECTORS, is_computable, stepped
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind, evaluator_version
from evaluator.records.canonical_lines import canonical, values_of
from evaluator.records.lines import RecordLine, TrainableTensor
from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.console import log
from starter_kit.federation.auxiliary import NO_AUXILIARY
from starter_kit.federation.rounds import Round
from starter_kit.own_files import file_of
from starter_kit.reporting.files import fsync_path
from starter_kit.runs.folder import FILES
from starter_kit.runs.setup import RunSetup

INDEX, MESSAGES, CODEC_FILE = (
    FILES[kind] for kind in (ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES, ArtifactKind.CODEC_FILE)
)
START = "transcript_start.f32"
# How many vectors as long as the model the disk must have room for beside messages: what ends a run.
RESERVED_VECTORS = 4
# How many coordinates of a step are computed at once.
SLICE = 2**21
# What the last line of an index takes at most.
END_BYTES = 1024
_ROUND = TypeAdapter(TranscriptRound)


def why_declared(setup: RunSetup) -> str:
    """Return why the evaluator can't compute a run's checkpoint from its messages; empty where it can."""
    step = setup.plan.step_of_mean
    if setup.guarantee is not None:
        return "its updates are private"
    if setup.settings.secure_aggregation is not None:
        return "secure aggregation hides single updates"
    if setup.plan.auxiliary != NO_AUXILIARY:
        return "the method sends more than models and updates"
    if step is None or not is_computable(step):
        return "the server does more than a known step of the mean update"
    terms = codec_terms(setup)
    if isinstance(terms, str):
        return terms
    return ""


def codec_terms(setup: RunSetup) -> CodecTerms | str:
    """Return the run's codec as the index states it, or why the evaluator can't run it."""
    codec = setup.settings.codec
    if not isinstance(codec, CodecPlugin):
        return BuiltIn.model_validate({"name": codec})
    settings = canonical(codec.model_dump(mode="json")).decode()
    if len(settings) > MAX_SETTINGS:
        return f"the codec has settings of more than {MAX_SETTINGS} characters"
    file = file_of(type(codec))
    if file is None:
        return KitPlugin(name=codec.name, kit_version=evaluator_version(), settings=settings)
    if len(file.source) > MAX_CODEC_BYTES:
        return f"the codec's file is larger than {MAX_CODEC_BYTES:,} bytes"
    return OwnFile(sha256=file.sha256, size_bytes=len(file.source), settings=settings)


def transcript_line(setup: RunSetup) -> TranscriptRun:
    """Return the first line of the index of a run that has a transcript."""
    step, codec = setup.plan.step_of_mean, codec_terms(setup)
    if step is None or isinstance(codec, str):
        raise ValueError("such a run has no transcript")
    return TranscriptRun.model_validate(
        {
            "base_sha256": setup.base_sha256,
            "clients": len(setup.clients),
            "codec": codec,
            **setup.parametrization,
            "server": step,
            "start": setup.public_start,
            "trainable": [
                TrainableTensor(name=name, shape=list(parameter.shape))
                for name, parameter in setup.model.tensors.parameters.items()
            ],
        }
    )


class TranscriptWriter:
    """Writes the transcript of an unfinished run in `folder`, after its whole rounds `rounds`.

    Args:
        server: What the server keeps after these rounds.
        planned: How many rounds the run will have.

    Attributes:
        size_bytes: The size of the file of messages.
    """

    def __init__(
        self,
        folder: Path,
        run: TranscriptRun,
        rounds: Sequence[TranscriptRound],
        server: Mapping[str, Tensor],
        planned: int,
    ) -> None:
        self._folder = folder
        self._planned = planned
        self._is_large = False
        self._run = run
        self._rounds = list(rounds)
        self._state: dict[str, Floats] = {
            name: server[name].numpy().copy() for name in SERVER_VECTORS if name in server
        }
        self._sizes = {message.sha256: message.size_bytes for line in rounds for message in line.messages}
        self.size_bytes = sum(self._sizes.values())
        self._sent: dict[LogEntry, str] = {}
        self._stopped = False
        self._index.write_bytes(b"".join(map(_line, [run, *rounds])))
        with self._messages.open("ab") as file:
            file.truncate(self.size_bytes)

    def message(self, entry: LogEntry, payload: bytes) -> None:
        """Take in a message as it is sent or arrives."""
        if self._stopped:
            return
        found = hashlib.sha256(payload).hexdigest()
        self._sent[entry] = found
        if found in self._sizes:
            return
        self._sizes[found] = len(payload)
        self.size_bytes += len(payload)
        if self.size_bytes > MAX_WHOLE_BYTES and not self._has_room(len(payload)):
            return
        with self._messages.open("ab") as file:
            file.write(payload)

    def round(self, finished: Round) -> None:
        """Take in a finished round, and make it survive a power cut."""
        if self._stopped:
            return
        messages = [
            TranscriptMessage(
                sender=entry.sender,
                receiver=entry.receiver,
                size_bytes=entry.size_bytes,
                sha256=self._sent[entry],
            )
            for entry in finished.messages
        ]
        kept = {message.sha256 for message in messages}
        if not set(self._sent.values()) <= kept or not self._follows(finished):
            self._stop("the model after a round isn't the server's step from the mean of its messages")
            return
        self._sent.clear()
        if finished.number == 1:
            finished.start.numpy().astype("<f4", copy=False).tofile(self._folder / START)
            fsync_path(self._folder / START)
        line = TranscriptRound(
            round=finished.number,
            messages=messages,
            state_sha256=state_sha256(finished.weights.numpy(), self._state),
        )
        self._rounds.append(line)
        if self._index.stat().st_size + len(_line(line)) > MAX_BYTES - END_BYTES:
            self._stop(f"the index of its messages takes more than {MAX_BYTES:,} bytes")
            return
        with self._index.open("ab") as file:
            file.write(_line(line))
        fsync_path(self._messages)
        fsync_path(self._index)
        if self.size_bytes > MAX_WHOLE_BYTES:
            self._keep_large()

    def _keep_large(self) -> None:
        """Say once how much disk the messages will take, or stop where there is no room for them."""
        done = len(self._rounds)
        further = self.size_bytes * (self._planned - done) // done
        if self._has_room(further) and not self._is_large:
            self._is_large = True
            log(
                f"The run keeps its messages in {MESSAGES} until the site has drawn rounds to open: about "
                f"{(self.size_bytes + further) / 1e9:,.1f} GB after {self._planned} rounds. See docs/bytes.md."
            )

    def _has_room(self, further: int) -> bool:
        """Return whether the disk has room for so many further bytes and the end of the run; stop if not."""
        free = shutil.disk_usage(self._folder).free
        if free >= further + RESERVED_VECTORS * 4 * self._run.numel:
            return True
        self._stop(f"the disk has room for {free:,} bytes, and its messages take {further:,} more")
        return False

    def finish(self, checkpoint: Path) -> None:
        """Add the last line, of a run that ended with this checkpoint; one without rounds needs no transcript."""
        if not self._rounds:
            remove_transcript(self._folder)
        elif not self._stopped:
            with self._index.open("ab") as file:
                file.write(_line(self._end(checkpoint)))

    def copy_to(self, folder: Path) -> None:
        """Write the transcript of the rounds so far beside the checkpoint of their last one."""
        if self._stopped or self.size_bytes > MAX_WHOLE_BYTES:
            # Of a large run only the end is counted: a copy would take as much disk as the run.
            return
        for name in (MESSAGES, START, CODEC_FILE):
            if (self._folder / name).exists():
                shutil.copyfile(self._folder / name, folder / name)
        end = self._end(folder / FILES[ArtifactKind.CHECKPOINT])
        (folder / INDEX).write_bytes(b"".join(map(_line, [self._run, *self._rounds, end])))

    @property
    def _index(self) -> Path:
        return self._folder / INDEX

    @property
    def _messages(self) -> Path:
        return self._folder / MESSAGES

    def _end(self, checkpoint: Path) -> TranscriptEnd:
        return TranscriptEnd(
            rounds=len(self._rounds),
            messages_root=messages_root([message.leaf for line in self._rounds for message in line.messages]),
            checkpoint_sha256=sha256_of(checkpoint),
        )

    def _follows(self, finished: Round) -> bool:
        """Return whether the evaluator's step leads to the round's model; the server's vectors are those after it."""
        before, total, after = (
            vector.numpy() for vector in (finished.start, finished.aggregate.total, finished.weights)
        )
        count = np.float32(max(len(finished.clients), 1))
        for begin in range(0, len(before), SLICE):
            part = slice(begin, begin + SLICE)
            state = {name: vector[part] for name, vector in self._state.items()}
            mean = np.divide(total[part], count, dtype=np.float32)
            found = stepped(self._run.server, before[part], mean, state)
            if not np.array_equal(found, after[part]):
                return False
            for name, values in state.items():
                self._state.setdefault(name, np.zeros_like(before))[part] = values
        return True

    def _stop(self, reason: str) -> None:
        self._stopped = True
        remove_transcript(self._folder)
        say_declared(reason)


def open_transcript(
    setup: RunSetup, folder: Path, rounds: int, server: Mapping[str, Tensor]
) -> TranscriptWriter | None:
    """Return the writer of a run's transcript after so many whole rounds; None where its bytes will be declared."""
    reason = why_declared(setup)
    earlier = [] if reason else _recovered(folder, transcript_line(setup), rounds)
    if earlier is None:
        reason = "the transcript of its first rounds is missing"
    if reason or earlier is None:
        remove_transcript(folder)
        if setup.guarantee is None:
            say_declared(reason)
        return None
    if file := file_of(type(setup.settings.codec)):
        (folder / CODEC_FILE).write_bytes(file.source)
    return TranscriptWriter(folder, transcript_line(setup), earlier, server, setup.rounds)


def say_declared(reason: str) -> None:
    """Say that the evaluator will not count the run's bytes."""
    log(f"The run's bytes will be declared, not counted: {reason}. See docs/bytes.md.")


def remove_transcript(folder: Path) -> None:
    """Delete the transcript in a run's folder, if there is one."""
    for name in (INDEX, MESSAGES, START, CODEC_FILE):
        (folder / name).unlink(missing_ok=True)


def _recovered(folder: Path, run: TranscriptRun, rounds: int) -> list[TranscriptRound] | None:
    """Return the lines of the first `rounds` rounds; None unless the index of this run has them, and their messages."""
    if not rounds:
        return []
    with suppress(OSError, ValidationError):
        first, *lines = (folder / INDEX).read_bytes().splitlines(keepends=True)
        found = [_ROUND.validate_json(line) for line in lines[:rounds]]
        sizes = {message.sha256: message.size_bytes for line in found for message in line.messages}
        whole = first == _line(run) and [line.round for line in found] == list(range(1, rounds + 1))
        if whole and (folder / MESSAGES).stat().st_size >= sum(sizes.values()):
            return found
    return None


def _line(line: RecordLine) -> bytes:
    return canonical(values_of(line)) + b"\n"
