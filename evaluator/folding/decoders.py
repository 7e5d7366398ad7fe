"""How a fold reads messages: with a codec of the evaluator, or from what a sandboxed process decoded."""

import hashlib
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evaluator.communication.codecs import BuiltInCodec, packed_model
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.decoding import DOWN, UP, VECTORS, distinct
from evaluator.folding.lines import TranscriptMessage
from evaluator.folding.opening import Folded
from evaluator.folding.reading import MessageFile

Floats = NDArray[np.float32]


class Decoder(Protocol):
    """Reads the messages of a run; `where` names the round in problems."""

    def update(self, message: TranscriptMessage, where: str) -> Floats:
        """Return the update (d,) of a message to the server.

        Raises:
            ProblemError: (`E_TRANSCRIPT_MESSAGE` or `E_TRANSCRIPT_FOLD`) It isn't that of the index, or no update.
        """

    def check_models(self, down: list[TranscriptMessage], weights: Floats, where: str) -> None:
        """Check that what clients were sent is the model `weights` (d,).

        Raises:
            ProblemError: As above.
        """


class BuiltInDecoder:
    """Decodes with a codec of the evaluator. A model has one encoding, which it computes.

    Args:
        start: The vector (d,) that every party started from.
    """

    def __init__(self, codec: BuiltInCodec, messages: MessageFile, start: Floats) -> None:
        self._codec = codec
        self._messages = messages
        self._start = start

    def update(self, message: TranscriptMessage, where: str) -> Floats:
        content = self._messages.read(message, where)
        try:
            return self._codec.decode(content, len(self._start))
        except ValueError as error:
            raise unfolded(where, "an update that the codec can decode", error) from error

    def check_models(self, down: list[TranscriptMessage], weights: Floats, where: str) -> None:
        try:
            expected = packed_model(self._codec, weights, self._start)
        except ValueError as error:
            raise unfolded(where, "a model that the codec can encode", error) from error
        hashed = hashlib.sha256(expected).hexdigest()
        for message in down:
            if message.sha256 != hashed:
                raise unfolded(
                    f"{where}, message to client {message.receiver}",
                    f"the round's model as {len(expected)} bytes of SHA-256 {hashed}",
                    f"{message.size_bytes} bytes of SHA-256 {message.sha256}",
                )
        # All of them have one content, which must be in the file.
        self._messages.read(down[0], f"{where}, message to client {down[0].receiver}")


class DecodedMessages:
    """Messages that a sandboxed process decoded into `folder`; see `evaluator.folding.decoding`.

    A codec of one's own may lose anything, and code that checks itself proves nothing. So what clients decode must be
    nearer to the server's model than the start is, and the start itself as long as nothing has changed.

    Raises:
        ProblemError: (`E_TRANSCRIPT_CODEC`) There are more or fewer vectors than messages.
    """

    def __init__(self, folder: Path, folded: Folded, messages: MessageFile, start: Floats) -> None:
        self._folder = folder
        self._messages = messages
        self._start = start
        self._places = {}
        for way in (UP, DOWN):
            of_way = distinct(folded, way)
            self._places[way] = {message.sha256: place for place, message in enumerate(of_way)}
            expected, found = 4 * len(start) * len(of_way), (folder / way / VECTORS).stat().st_size
            if expected != found:
                raise ProblemError.of(
                    ErrorCode.TRANSCRIPT_CODEC, "decoded messages", f"{expected} bytes", f"{found} bytes"
                )

    def update(self, message: TranscriptMessage, where: str) -> Floats:
        return self._vector(UP, message, where)

    def check_models(self, down: list[TranscriptMessage], weights: Floats, where: str) -> None:
        change = weights - self._start
        least = np.linalg.norm(change.astype(np.float64))
        for message in {message.sha256: message for message in down}.values():
            place = f"{where}, message to client {message.receiver}"
            missed = np.linalg.norm((self._vector(DOWN, message, place) - change).astype(np.float64))
            if not (missed < least or missed == least == 0):
                raise unfolded(
                    place,
                    f"a model nearer to the server's than the start, which is {least:.4g} away",
                    f"one that is {missed:.4g} away",
                )

    def _vector(self, way: str, message: TranscriptMessage, where: str) -> Floats:
        self._messages.read(message, where)
        size = len(self._start)
        place = self._places[way][message.sha256]
        return np.fromfile(self._folder / way / VECTORS, "<f4", count=size, offset=4 * size * place).astype(
            np.float32, copy=False
        )


def unfolded(where: str, expected: object, found: object) -> ProblemError:
    """Return the problem of a round or a checkpoint that doesn't follow from the messages."""
    return ProblemError.of(ErrorCode.TRANSCRIPT_FOLD, where=where, expected=expected, found=found)
