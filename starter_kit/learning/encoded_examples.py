"""The tokens of training examples, in a file without a name: those of a page once, whatever is asked about it.

A text of 512 tokens takes 10 kB, 0.7 GB for 69,894 pages, in each process that trains on them. In a file they take no
memory of the process: the system caches what it has memory for.
"""

import os
import tempfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evaluator.docvqa.dataset import Page, Question, first_line
from evaluator.docvqa.tokenization import END_BOX, PROMPT_BOX, EncodedText, Tokenizer
from evaluator.errors import ErrorCode, ProblemError

# The tokens (L,) of a page's words and their boxes (L, 4), as many as can be read of a page at most.
PageTokens = tuple[NDArray[np.int32], NDArray[np.float32]]
# A token and its box.
TOKEN_BYTES = 4 + 4 * 4


class EncodedExamples:
    """The text of each example, as `Tokenizer.encode` gives it.

    Args:
        questions: Of each example.
        pages: Each is read once.
        max_input_tokens: The longest text of an example, question and words.

    Raises:
        ProblemError: (`E_DATASET_FOLDER`) The folder for temporary files has no room.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        questions: Mapping[int, Question],
        pages: Mapping[str, Page],
        max_input_tokens: int,
    ) -> None:
        self._end = tokenizer.end
        self._room = max_input_tokens - 1
        self._page_of = {example: question.page for example, question in questions.items()}
        self._prompts = {
            example: _prompt(tokenizer, question.question, max_input_tokens)
            for example, question in questions.items()
        }
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is read for as long as the examples are
        # Where the tokens of a page begin in the file, and how many they are.
        self._places: dict[str, tuple[int, int]] = {}
        try:
            for name in dict.fromkeys(self._page_of.values()):
                ids, boxes = _page_tokens(tokenizer, pages[name], max_input_tokens)
                self._places[name] = self._file.tell(), len(ids)
                self._file.write(ids.tobytes() + boxes.tobytes())
            self._file.flush()
        except OSError as error:
            raise ProblemError.of(
                ErrorCode.DATASET_FOLDER,
                where=tempfile.gettempdir(),
                expected=f"room for the tokens of {len(pages):,} pages, 10 kB for each",
                found=first_line(error),
                next_step="Make room there, or name another folder in the environment variable TMPDIR.",
            ) from error

    def __len__(self) -> int:
        return len(self._prompts)

    def length(self, example: int) -> int:
        """Return how many tokens are read of an example."""
        return min(self._whole(example), self._room) + 1

    def is_cut(self, example: int) -> bool:
        """Whether an example has more tokens than are read of it."""
        return self._whole(example) > self._room

    def text(self, example: int) -> EncodedText:
        """Return the tokens of an example, with their boxes as an array (L, 4) float32. Threads may ask at once."""
        prompt = self._prompts[example]
        page, page_boxes = self._read(self._page_of[example])
        ids = np.concatenate([prompt, page])[: self._room].tolist()
        boxes = [np.tile(np.array(PROMPT_BOX, np.float32), (len(prompt), 1)), page_boxes]
        return EncodedText(
            [*ids, self._end],
            np.concatenate([np.concatenate(boxes)[: self._room], np.array([END_BOX], np.float32)]),
            is_cut=self.is_cut(example),
        )

    def _whole(self, example: int) -> int:
        return len(self._prompts[example]) + self._places[self._page_of[example]][1]

    def _read(self, page: str) -> PageTokens:
        begin, count = self._places[page]
        content = os.pread(self._file.fileno(), TOKEN_BYTES * count, begin)
        boxes = np.frombuffer(content, np.float32, offset=4 * count)
        return np.frombuffer(content, np.int32, count), boxes.reshape(-1, 4)


def _prompt(tokenizer: Tokenizer, question: str, max_input_tokens: int) -> NDArray[np.int32]:
    """Return the tokens (L,) before a page's words: one more than are read, if there are so many."""
    return np.array(tokenizer.encode(question, [], [], max_input_tokens + 1).ids[:-1], np.int32)


def _page_tokens(tokenizer: Tokenizer, page: Page, max_input_tokens: int) -> PageTokens:
    prompt = len(_prompt(tokenizer, "", max_input_tokens))
    text = tokenizer.encode("", page.words, page.boxes, prompt + max_input_tokens + 1)
    return np.array(text.ids[prompt:-1], np.int32), np.array(text.boxes[prompt:-1], np.float32).reshape(-1, 4)
