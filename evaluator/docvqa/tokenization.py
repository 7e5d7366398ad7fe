"""Text to token ids and back, as VT5 reads a page.

A question and its page become `question: {q}  context: `, then each word by itself, then the end token; every
token carries the box of its word. Case is preserved: whoever trains on answers must lower-case them, since
the metric ignores case.

A tokenizer is a `tokenizer.json`. T5's own ships as a SentencePiece model instead, which is converted on opening.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import tokenizers
from numpy.typing import NDArray

from evaluator.docvqa.dataset import Box
from evaluator.errors import ErrorCode, ProblemError

# Their ids are 0, 1 and 2, as in T5.
PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"

PROMPT_BOX: Box = (0.0, 0.0, 1000.0, 1000.0)
END_BOX: Box = (0.0, 0.0, 0.0, 0.0)

TOKENIZER = "tokenizer.json"
SENTENCEPIECE = "spiece.model"

CACHED_WORDS = 500_000

# Spaces that the published decoding takes out of an answer.
TIGHTENED = [(f" {mark}", mark) for mark in (".", "?", "!", ",")]
TIGHTENED += [(" ' ", "'")] + [(f" {ending}", ending) for ending in ("n't", "'m", "'s", "'ve", "'re")]


@dataclass(frozen=True)
class EncodedText:
    """The tokens of a question and its page.

    Attributes:
        boxes: One box for each token, words' boxes as the data gives them; or all of them as an array (L, 4).
        is_cut: Whether there was more to read than fits.
    """

    ids: list[int]
    boxes: list[Box] | NDArray[np.float32]
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer:
    """A tokenizer with T5's special tokens; remembers the words that it has seen."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend = backend
        self._words: dict[str, list[int]] = {}
        self.end = self._special_id(END)
        self._special_id(PAD)

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Return the tokenizer of a model folder: `tokenizer.json`, or else `spiece.model`.

        Raises `ProblemError` (`E_REFERENCE_FORMAT`) where there is neither, or none that can be read.
        """
        path = folder / TOKENIZER
        if not path.exists() and (folder / SENTENCEPIECE).exists():
            return cls(_convert_sentencepiece(folder))
        try:
            backend = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:
            # The library raises no narrower class for a broken file.
            raise ProblemError.of(ErrorCode.REFERENCE_FORMAT, str(path), "a tokenizer", error) from error
        return cls(backend)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._backend.save(str(folder / TOKENIZER))

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size()

    def encode(
        self, question: str, words: Sequence[str], boxes: Sequence[Box], max_input_tokens: int
    ) -> EncodedText:
        """Return the tokens that the model reads, at most `max_input_tokens`, the end token always among them."""
        ids = list(self._backend.encode(f"question: {question}  context: ", add_special_tokens=False).ids)
        token_boxes = [PROMPT_BOX] * len(ids)
        # No more words at a time than there is room for, since few have no tokens: a page may have very many.
        for start in range(0, len(words), max_input_tokens):
            if len(ids) >= max_input_tokens:
                break
            some = slice(start, start + max_input_tokens)
            for pieces, box in zip(self._encode_words(words[some]), boxes[some], strict=True):
                ids += pieces
                token_boxes += [box] * len(pieces)
        room = max_input_tokens - 1
        return EncodedText([*ids[:room], self.end], [*token_boxes[:room], END_BOX], is_cut=len(ids) > room)

    def encode_answers(self, answers: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each answer, unchanged, with the end token."""
        encodings = self._backend.encode_batch(list(answers), add_special_tokens=False)
        return [[*encoding.ids, self.end] for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of generated ids, without special tokens."""
        text = self._backend.decode(list(ids), skip_special_tokens=True)
        for loose, tight in TIGHTENED:
            text = text.replace(loose, tight)
        return text

    def _encode_words(self, words: Sequence[str]) -> list[list[int]]:
        # Several threads may encode at once: a full cache is left to those that still read it, and a new one started.
        known = self._words
        unseen = list({word for word in words if word not in known})
        if len(known) + len(unseen) > CACHED_WORDS:
            self._words = known = {}
            unseen = list(set(words))
        encodings = self._backend.encode_batch(unseen, add_special_tokens=False)
        known.update(zip(unseen, (encoding.ids for encoding in encodings), strict=True))
        return [known[word] for word in words]

    def _special_id(self, token: str) -> int:
        token_id = self._backend.token_to_id(token)
        if token_id is None:
            raise ProblemError.of(
                ErrorCode.REFERENCE_FORMAT, where="tokenizer", expected=f"the special token {token}"
            )
        return token_id


def _convert_sentencepiece(folder: Path) -> tokenizers.Tokenizer:
    # Imported here: it is slow to import, and rarely needed.
    from transformers.models.t5.tokenization_t5 import T5Tokenizer

    try:
        converted = T5Tokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise ProblemError.of(
            ErrorCode.REFERENCE_FORMAT, str(folder / SENTENCEPIECE), "T5's SentencePiece model", error
        ) from error
    backend: tokenizers.Tokenizer = converted.backend_tokenizer
    return backend
