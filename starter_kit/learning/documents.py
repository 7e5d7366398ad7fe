"""A training split as examples, for which each question is encoded once and each page's image features computed
once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import Batch
from starter_kit.learning.trainable_model import TrainableModel

PAGES_AT_ONCE = 64


class Documents:
    """Questions of `dataset`, with their first answers, as training examples for `model`.

    Examples are addressed by their index among the dataset's questions. Answers are lower-cased, as the metric
    ignores case. Features are kept in memory, as float32: V·dv numbers a page.

    Args:
        model: The model that trains on them, which also computes the pages' features.
        examples: The indexes of those that will be used; only their pages are read.
        max_input_tokens: The longest text of an example, question and words.
        on_page: Called with the number of pages read so far, and of all pages.
    """

    def __init__(
        self,
        model: TrainableModel,
        tokenizer: Tokenizer,
        dataset: Dataset,
        *,
        examples: Sequence[int],
        max_input_tokens: int,
        on_page: Callable[[int, int], None],
    ) -> None:
        self._model = model
        chosen = {example: dataset.questions[example] for example in sorted(examples)}
        pages = list(dict.fromkeys(question.page for question in chosen.values()))
        rows = {page: row for row, page in enumerate(pages)}
        self._page_row = {example: rows[question.page] for example, question in chosen.items()}
        self._texts = {
            example: tokenizer.encode(
                question.question,
                dataset.pages[question.page].words,
                dataset.pages[question.page].boxes,
                max_input_tokens,
            )
            for example, question in chosen.items()
        }
        answers = [question.answers[0].lower() if question.answers else "" for question in chosen.values()]
        self._answers = dict(zip(chosen, tokenizer.encode_answers(answers), strict=True))
        self._features = _features(model, dataset, pages, on_page)

    @property
    def cut(self) -> int:
        """How many examples have a text that is longer than what is read of it."""
        return sum(text.is_cut for text in self._texts.values())

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def longest(self) -> int:
        """The example with the longest text, which is the one that takes most memory."""
        return max(self._texts, key=lambda example: len(self._texts[example]))

    def loss(self, examples: Sequence[int]) -> Tensor:
        """Return the model's mean loss, a scalar, over the tokens of the examples' answers."""
        return self.losses([examples])[0]

    def losses(self, groups: Sequence[Sequence[int]]) -> Tensor:
        """Return the `loss` (G,) of each of G groups of examples, from one pass of the model over all of them."""
        batch = self._batch([example for group in groups for example in group])
        return self._model.losses(batch, [len(group) for group in groups])

    def _batch(self, examples: Sequence[int]) -> Batch:
        return Batch.pad(
            [self._texts[example] for example in examples],
            self._features[[self._page_row[example] for example in examples]],
            [self._answers[example] for example in examples],
            pad_token_id=self._model.config.pad_token_id,
        )


def _features(
    model: TrainableModel, dataset: Dataset, pages: Sequence[str], on_page: Callable[[int, int], None]
) -> Tensor:
    """Return the frozen image tower's output (P, V, dv) float32 for each page, on the CPU."""
    size = model.config.visual.image_size
    parts = [torch.empty(0, model.config.visual.tokens, model.config.visual.hidden_size)]
    for start in range(0, len(pages), PAGES_AT_ONCE):
        some = pages[start : start + PAGES_AT_ONCE]
        pixels = torch.stack([read_page(dataset.image_path(page), size) for page in some])
        parts.append(model.page_features(pixels))
        on_page(start + len(some), len(pages))
    return torch.cat(parts)
