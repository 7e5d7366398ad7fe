"""Opening the rounds of a run that the site has drawn for its index of messages; see `evaluator.folding.opening`.

The state before each of them is computed from the start and the messages of all earlier rounds, so that a training
stores no state of a round: only its start, in `transcript_start.f32`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluator.communication.codecs import CODECS
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.decoders import unfolded
from evaluator.folding.folding import Floats, Model
from evaluator.folding.lines import BuiltIn, KitPlugin, TranscriptMessage, TranscriptRun
from evaluator.folding.opening import Folded, folded_rounds
from evaluator.folding.reading import MAX_MESSAGES_BYTES, MessageFile, read_transcript
from evaluator.messages.jobs import DRAWN_ROUNDS, ArtifactKind
from starter_kit.compression import plugin_codecs
from starter_kit.console import log
from starter_kit.own_files import run_own_file
from starter_kit.reporting.files import replacing
from starter_kit.runs.folder import FILES, OPENED_MESSAGES, RunFolder
from starter_kit.runs.opened_round import require_challenge, rounds_in_words
from starter_kit.runs.transcript import START, say_declared


def open_messages(run: Path, challenge: str, drawn: int = DRAWN_ROUNDS) -> list[int]:
    """Write the messages of the drawn rounds, and the states before them, into the folder `run`; return their numbers.

    A file of these rounds that is there stays. There are no rounds where the file would be too large to upload.

    Args:
        challenge: What the site drew for the index, 64 hexadecimal digits.
        drawn: How many rounds it draws at least, besides the last one.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The challenge has another form; (`E_RUN_FOLDER`) the messages of the run, or
            its start, are gone or can't be written; ``E_TRANSCRIPT_*``: they aren't those of the index.
    """
    require_challenge(challenge)
    folder, path = RunFolder(run), run / OPENED_MESSAGES
    transcript = read_transcript(folder.file(ArtifactKind.TRANSCRIPT))
    folded = folded_rounds(transcript, challenge, drawn)
    numbers = [line.round for line in folded.rounds]
    if folded.size_bytes > MAX_MESSAGES_BYTES:
        say_declared(
            f"the messages of {rounds_in_words(numbers)} take {folded.size_bytes:,} bytes, and at most "
            f"{MAX_MESSAGES_BYTES:,} can be attached"
        )
        return []
    try:
        if not _is_opened(path, folded):
            log(
                f"{path}: opening {rounds_in_words(numbers)} of {len(transcript.rounds)}, which the site has drawn"
            )
            whole = MessageFile(folder.file(ArtifactKind.MESSAGES), folded_rounds(transcript, None, drawn))
            start = np.fromfile(run / START, "<f4").astype(np.float32, copy=False)
            decoder = _UpdateDecoder(transcript.run, whole, run / FILES[ArtifactKind.CODEC_FILE])
            with replacing(path) as new:
                _write(new, folded, whole, Model(transcript.run, decoder, start, {}))
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The messages of the run can't be opened.",
            where=str(path),
            expected=f"room for {folded.size_bytes:,} bytes, and the run's messages and start as `pfl train` left them",
            found=" ".join(str(error).split()),
        ) from error
    return numbers


def _is_opened(path: Path, folded: Folded) -> bool:
    """Return whether the file has these rounds; it was only ever written as a whole."""
    if not path.exists() or path.stat().st_size != folded.size_bytes:
        return False
    messages, run, rounds = MessageFile(path, folded), folded.transcript.run, folded.transcript.rounds
    model = Model(run, _UpdateDecoder(run, messages, path), np.zeros(0, np.float32), {})
    try:
        for number in folded.opened:
            model.begin_from(messages.state(number), rounds[number - 2])
    except ProblemError:
        return False
    return True


def _write(path: Path, folded: Folded, whole: MessageFile, model: Model) -> None:
    # A run of one round has no state before it to open.
    last = max(folded.opened, default=1)
    with path.open("wb") as file:
        for line in folded.transcript.rounds[:last]:
            if line.round in folded.opened:
                for vector in model.vectors:
                    file.write(vector.astype("<f4", copy=False).data)
            if line.round < last:
                model.round(line)
        for message in folded.distinct:
            file.write(whole.read(message, FILES[ArtifactKind.MESSAGES]))


class _UpdateDecoder:
    """Decodes the updates of a run of one's own, by whatever codec; what it sent to clients needs no check here."""

    def __init__(self, run: TranscriptRun, messages: MessageFile, codec_file: Path) -> None:
        self._messages = messages
        self._numel = run.numel
        self._decode = _decoding(run, codec_file)

    def update(self, message: TranscriptMessage, where: str) -> Floats:
        try:
            return self._decode(self._messages.read(message, where), self._numel)
        except ValueError as error:
            raise unfolded(where, "an update that the codec can decode", error) from error

    def check_models(self, down: list[TranscriptMessage], weights: Floats, where: str) -> None:
        pass


def _decoding(run: TranscriptRun, codec_file: Path) -> Callable[[bytes, int], Floats]:
    terms = run.codec
    if isinstance(terms, BuiltIn):
        return CODECS[terms.name].decode
    kind = plugin_codecs.CODECS
    found: Any = kind.plugin_class(terms.name) if isinstance(terms, KitPlugin) else None
    if found is None:
        found = getattr(run_own_file(codec_file), kind.class_name)
    codec: plugin_codecs.CodecPlugin = found.model_validate_json(terms.settings, strict=True)
    fitted = codec.with_layout([torch.Size(tensor.shape) for tensor in run.trainable])
    return lambda message, size: plugin_codecs.decoded(fitted, fitted.decode, message, size).detach().numpy()
