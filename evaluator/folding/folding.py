"""Folding: the model of a run, computed from its base weights and its messages.

Round by round, the messages to the clients must be the codec's encoding of the model, those to the server are decoded
and added in float32 in the order of arrival, and the server's step turns their mean into the next model, whose hash the
index commits to. The last model must be the checkpoint's trained tensors to the bit; adapters must be merged into it
but for rounding; nothing else may differ from the base weights. So a checkpoint that folds holds nothing that its
messages don't, apart from what docs/bytes.md lists. Of a large run only drawn rounds are folded, each from the state
that the index commits to.

One round is in memory: the model, the start, the sum, an update, a message, and what the server keeps.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.weight_changes import TensorChange
from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.communication.codecs import CODECS
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.decoders import BuiltInDecoder, DecodedMessages, Decoder, unfolded
from evaluator.folding.lines import BuiltIn, TranscriptRound, TranscriptRun
from evaluator.folding.opening import Folded
from evaluator.folding.reading import MessageFile, Transcript
from evaluator.folding.server_step import is_computable, kept_vectors, stepped
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import SERVER
from evaluator.messages.progress import OnProgress
from evaluator.records.merging import first_parts, merge_fault

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WeightFiles:
    """Base weights and checkpoint of a run, with the tensors that differ between them."""

    base: Path
    checkpoint: Path
    changes: list[TensorChange]


def state_sha256(weights: Floats, state: dict[str, Floats]) -> str:
    """Return the hash of the server's state after a round: weights (d,), then its vectors in the order of names."""
    digest = hashlib.sha256()
    for vector in (weights, *(state[name] for name in sorted(state))):
        digest.update(np.ascontiguousarray(vector, "<f4").data)
    return digest.hexdigest()


def start_vector(run: TranscriptRun, base: Path) -> Floats:
    """Return the vector (d,) that every party starts from: base weights, and first values of adapters.

    Raises:
        ProblemError: (`E_TRANSCRIPT_FORMAT`) The index names tensors that aren't in the base weights, or adapters that
            don't fit them.
    """
    beside = {}
    for adapter in run.adapters:
        first = first_parts(adapter, run.start, base)
        if first is None or not 1 <= adapter.rank <= min(read_header(base).tensors[adapter.target].shape):
            raise _unknown_tensor(f"adapters of {adapter.target}")
        for letter, tensor in adapter.tensors.items():
            beside[tensor.name] = first[letter].reshape(-1)
    vector = weight_vector(base, {tensor.name: tensor.shape for tensor in run.trainable}, beside)
    if vector is None:
        raise _unknown_tensor("trainable")
    return vector.read(0, vector.numel)


def fold(
    folded: Folded,
    messages: MessageFile,
    files: WeightFiles,
    on_progress: OnProgress,
    *,
    decoded: Path | None = None,
) -> None:
    """Compute the run's model from its messages, and compare it with the checkpoint.

    Args:
        decoded: Where the messages of a codec plug-in were decoded; None for a codec of the evaluator.

    Raises:
        ProblemError: `E_TRANSCRIPT_FORMAT`, `E_TRANSCRIPT_MESSAGE`, `E_TRANSCRIPT_FOLD` or `E_TRANSCRIPT_CODEC`, naming
            the round and the message, or the tensor, that doesn't follow.
    """
    run = folded.transcript.run
    _check_files(folded.transcript, files)
    if not is_computable(run.server):
        raise _malformed("server", "a rule that can be computed", run.server.rule)
    for line in folded.transcript.rounds:
        _check_exchanges(line)
    start = start_vector(run, files.base)
    model = Model(run, _decoder(folded, messages, start, decoded), start, {})
    for done, line in enumerate(folded.rounds):
        on_progress(done, len(folded.rounds))
        if line.round in folded.opened:
            model.begin_from(messages.state(line.round), folded.transcript.rounds[line.round - 2])
        model.round(line)
    on_progress(len(folded.rounds), len(folded.rounds))
    _check_checkpoint(run, model.weights, files)


@dataclass
class Model:
    """A run between two rounds: the model (d,), and what the server keeps."""

    run: TranscriptRun
    decoder: Decoder
    weights: Floats
    state: dict[str, Floats]

    @property
    def vectors(self) -> list[Floats]:
        """The weights, and what the server keeps, as a file of drawn rounds has them."""
        return [self.weights, *(self.state[name] for name in kept_vectors(self.run.server))]

    def begin_from(self, vectors: Floats, before: TranscriptRound) -> None:
        """Continue with the `vectors`, end to end, to which the round `before` commits.

        Raises:
            ProblemError: (`E_TRANSCRIPT_MESSAGE`) They aren't those.
        """
        names = kept_vectors(self.run.server)
        self.weights, *kept = vectors.reshape(1 + len(names), -1)
        self.state = dict(zip(names, kept, strict=True))
        if (found := state_sha256(self.weights, self.state)) != before.state_sha256:
            raise ProblemError.of(
                ErrorCode.TRANSCRIPT_MESSAGE,
                where=f"the state before round {before.round + 1}",
                expected=f"a state of SHA-256 {before.state_sha256}, as after round {before.round}",
                found=found,
            )

    def round(self, line: TranscriptRound) -> None:
        """Compute the model after a round.

        Raises:
            ProblemError: (`E_TRANSCRIPT_MESSAGE` or `E_TRANSCRIPT_FOLD`) It doesn't follow from the messages.
        """
        where = f"round {line.round}"
        if down := [message for message in line.messages if message.sender == SERVER]:
            self.decoder.check_models(down, self.weights, where)
        up = [message for message in line.messages if message.sender != SERVER]
        total = np.zeros_like(self.weights)
        for message in up:
            total += self.decoder.update(message, f"{where}, message of client {message.sender}")
        mean = total / np.float32(max(len(up), 1))
        after = stepped(self.run.server, self.weights, mean, self.state)
        turns = self.run.turns
        self.weights = np.where(turns.moved(line.round), after, self.weights) if turns else after
        found = state_sha256(self.weights, self.state)
        if found != line.state_sha256:
            raise unfolded(f"{where}, state_sha256", f"{found}, the state that follows", line.state_sha256)


def _decoder(folded: Folded, messages: MessageFile, start: Floats, decoded: Path | None) -> Decoder:
    codec = folded.transcript.run.codec
    if isinstance(codec, BuiltIn):
        return BuiltInDecoder(CODECS[codec.name], messages, start)
    if decoded is None:
        raise ValueError("a codec plug-in needs a process of its own")
    return DecodedMessages(decoded, folded, messages, start)


def _check_exchanges(line: TranscriptRound) -> None:
    """Check that each client is sent the model once, and answers once at most, after it was sent."""
    receivers = [message.receiver for message in line.messages if message.sender == SERVER]
    senders = [message.sender for message in line.messages if message.sender != SERVER]
    one_way = SERVER in receivers or any(
        message.receiver != SERVER for message in line.messages if message.sender != SERVER
    )
    repeated = len(set(receivers)) < len(receivers) or len(set(senders)) < len(senders)
    if one_way or repeated or not set(senders) <= set(receivers):
        raise unfolded(
            f"round {line.round}",
            "one message to each client of the round, and at most one from each of them",
            f"messages to {receivers or 'nobody'} and from {senders or 'nobody'}",
        )


def _check_files(transcript: Transcript, files: WeightFiles) -> None:
    for field, stated, path, name in (
        ("line 1, base_sha256", transcript.run.base_sha256, files.base, "the base weights"),
        ("end line, checkpoint_sha256", transcript.end.checkpoint_sha256, files.checkpoint, "the checkpoint"),
    ):
        # On the site the files have other names.
        if (actual := sha256_of(path)) != stated:
            raise unfolded(f"transcript.jsonl, {field}", f"{actual}, the SHA-256 of {name}", stated)


def _check_checkpoint(run: TranscriptRun, weights: Floats, files: WeightFiles) -> None:
    """Check that the checkpoint has the folded model, merged adapters, and else the base weights."""
    parts = np.split(weights, np.cumsum([tensor.numel for tensor in run.trainable])[:-1])
    folded = dict(zip([tensor.name for tensor in run.trainable], parts, strict=True))
    adapters = {tensor.name for adapter in run.adapters for tensor in adapter.tensors.values()}
    for tensor in run.trainable:
        if tensor.name in adapters:
            continue
        stored = weight_vector(files.checkpoint, {tensor.name: tensor.shape})
        if stored is None or not np.array_equal(
            _bits(stored.read(0, tensor.numel)), _bits(folded[tensor.name])
        ):
            raise unfolded(
                f"checkpoint, tensor {tensor.name}", "the values that follow from the messages", "others"
            )
    for adapter in run.adapters:
        first = first_parts(adapter, run.start, files.base)
        scale = run.lora_scale or 0.0
        if found := merge_fault(adapter, scale, first, folded, files.base, files.checkpoint):
            raise unfolded(
                f"checkpoint, tensor {adapter.target}",
                "the base weights and the product of its adapters that follow from the messages",
                found,
            )
    explained = {tensor.name for tensor in run.trainable} | {adapter.target for adapter in run.adapters}
    for change in files.changes:
        if change.name not in explained:
            raise unfolded(f"checkpoint, tensor {change.name}", "its base weights", "others")


def _bits(values: Floats) -> NDArray[np.uint32]:
    return values.view(np.uint32)


def _malformed(where: str, expected: object, found: object) -> ProblemError:
    return ProblemError.of(ErrorCode.TRANSCRIPT_FORMAT, where=where, expected=expected, found=found)


def _unknown_tensor(where: str) -> ProblemError:
    return _malformed(where, "tensors of the base weights, and adapters of their layers", "others")
