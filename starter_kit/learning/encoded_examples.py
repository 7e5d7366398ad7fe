"""The tokens of training examples, in little memory: those of a page once, whatever is asked about it.

A text of 512 tokens takes 10 kB as arrays and is shared by the three questions that a page has on average, where lists
of tokens and boxes took 8 kB for each question beside 130 kB for the page's words.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.docvqa.dataset import Page, Question
from evaluator.docvqa.tokenization import END_BOX, PROMPT_BOX, EncodedText, Tokenizer


@dataclass(frozen=True)
class _PageTokens:
    """The tokens (L,) of a page's words and their boxes (L, 4) float32, as many as can be read of a page at most."""

    ids: NDArray[np.int32]
    boxes: NDArray[np.float32]


class EncodedExamples:
    """The text of each example, as `Tokenizer.encode` gives it.

    Args:
        questions: The question of each example.
        pages: The pages that they are about; each is read once.
        max_input_tokens: The longest text of an example, question and words.
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
        self._pages = {
            name: _page_tokens(tokenizer, pages[name], max_input_tokens)
            for name in dict.fromkeys(self._page_of.values())
        }

    def __len__(self) -> int:
        return len(self._prompts)

    def length(self, example: int) -> int:
        """Return how many tokens are read of an example."""
        return min(self._whole(example), self._room) + 1

    def is_cut(self, example: int) -> bool:
        """Whether an example has more tokens than are read of it."""
        return self._whole(example) > self._room

    def text(self, example: int) -> EncodedText:
        """Return the tokens of an example, with their boxes as an array (L, 4) float32."""
        prompt, page = self._prompts[example], self._pages[self._page_of[example]]
        ids = np.concatenate([prompt, page.ids])[: self._room].tolist()
        boxes = [np.tile(np.array(PROMPT_BOX, np.float32), (len(prompt), 1)), page.boxes]
        return EncodedText(
            [*ids, self._end],
            np.concatenate([np.concatenate(boxes)[: self._room], np.array([END_BOX], np.float32)]),
            is_cut=self.is_cut(example),
        )

    def _whole(self, example: int) -> int:
        return len(self._prompts[example]) + len(self._pages[self._page_of[example]].ids)


def _prompt(tokenizer: Tokenizer, question: str, max_input_tokens: int) -> NDArray[np.int32]:
    """Return the tokens (L,) before a page's words: one more than are read, if there are so many."""
    return np.array(tokenizer.encode(question, [], [], max_input_tokens + 1).ids[:-1], np.int32)


def _page_tokens(tokenizer: Tokenizer, page: Page, max_input_tokens: int) -> _PageTokens:
    prompt = len(_prompt(tokenizer, "", max_input_tokens))
    text = tokenizer.encode("", page.words, page.boxes, prompt + max_input_tokens + 1)
    return _PageTokens(
        np.array(text.ids[prompt:-1], np.int32), np.array(text.boxes[prompt:-1], np.float32).reshape(-1, 4)
    )
