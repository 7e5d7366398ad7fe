"""A training split as examples, for which each question is encoded once and each page's image features computed
once."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import is_out_of_memory
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import Batch
from starter_kit.learning.compute import EXACT, Compute
from starter_kit.learning.encoded_examples import EncodedExamples
from starter_kit.learning.page_features import page_features
from starter_kit.learning.trainable_model import TrainableModel

logger = logging.getLogger(__name__)


class Documents:
    """Questions of `dataset`, with their first answers, as training examples for `model`.

    Examples are addressed by their index among the dataset's questions. Answers are lower-cased, as the metric
    ignores case.

    Args:
        model: The model that trains on them, which also computes the pages' features.
        examples: The indexes of those that will be used; only their pages are read.
        max_input_tokens: The longest text of an example, question and words.
        on_page: Called with the number of pages read so far, and of all pages.

    Attributes:
        micro_batch_size: See `Compute`.
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
        compute: Compute = EXACT,
    ) -> None:
        self._model = model
        chosen = {example: dataset.questions[example] for example in sorted(examples)}
        pages = list(dict.fromkeys(question.page for question in chosen.values()))
        rows = {page: row for row, page in enumerate(pages)}
        self._page_row = {example: rows[question.page] for example, question in chosen.items()}
        self._texts = EncodedExamples(tokenizer, chosen, dataset.pages, max_input_tokens)
        answers = [question.answers[0].lower() if question.answers else "" for question in chosen.values()]
        self._answers = dict(zip(chosen, tokenizer.encode_answers(answers), strict=True))
        self._features = page_features(model, dataset, pages, on_page, precision=compute.features)
        self.micro_batch_size = compute.micro_batch_size
        self._prepared: dict[tuple[int, ...], Future[Batch]] = {}

    @property
    def cut(self) -> int:
        """How many examples have a text that is longer than what is read of it."""
        return sum(map(self._texts.is_cut, self._page_row))

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def longest(self) -> int:
        """The example with the longest text, which is the one that takes most memory."""
        return max(self._page_row, key=self._texts.length)

    def loss(self, examples: Sequence[int]) -> Tensor:
        """Return the model's mean loss, a scalar, over the tokens of the examples' answers."""
        return self.losses([examples])[0]

    def losses(self, groups: Sequence[Sequence[int]]) -> Tensor:
        """Return the `loss` (G,) of each of G groups of examples, from one pass of the model over all of them."""
        batch = self._batch([example for group in groups for example in group])
        return self._model.losses(batch, [len(group) for group in groups])

    def backward(self, examples: Sequence[int]) -> Tensor:
        """Add the gradient of the examples' `loss` to the model's trained tensors, which have none before, and return
        the loss, a scalar without a gradient.

        The examples pass through the model in parts of `Compute.micro_batch_size`. Where memory runs out, the step is
        computed again in parts half as large. The next step begins with the size of the settings: what one provider's
        examples need has no influence on another's steps.
        """
        at_once = min(len(examples), self.micro_batch_size or len(examples))
        while True:
            try:
                return self._backward_in_parts(examples, at_once)
            except Exception as error:
                if not is_out_of_memory(error) or at_once == 1:
                    raise
            # Outside of the handler, nothing holds what the failed pass stored.
            at_once //= 2
            self._model.let_go()
            self._prepared.clear()
            logger.warning("memory doesn't suffice for a step: set compute.micro_batch_size to %d", at_once)

    def prepare(self, examples: Sequence[int]) -> None:
        """Read the examples of the next step in another thread, while this one computes the current step."""
        for part in _parts(examples, self.micro_batch_size or max(1, len(examples)))[:1]:
            self._prepared[tuple(part)] = self._reader.submit(self._read, part)

    @cached_property
    def _reader(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "examples")

    def _backward_in_parts(self, examples: Sequence[int], at_once: int) -> Tensor:
        parts, model = _parts(examples, at_once), self._model
        if len(parts) == 1:
            loss = model.losses(self._batch(examples), [len(examples)])[0]
            model.backward(loss)
            return loss.detach()
        total = sum(len(self._answers[example]) for example in examples)
        losses = []
        for part, following in zip(parts, [*parts[1:], []], strict=True):
            self.prepare(following)
            # The loss is a mean over tokens, so a part counts by its tokens.
            loss = model.losses(self._batch(part), [len(part)])[0]
            share = loss * (sum(len(self._answers[example]) for example in part) / total)
            model.backward(share)
            losses.append(share.detach())
        return torch.stack(losses).sum()

    def _batch(self, examples: Sequence[int]) -> Batch:
        prepared = self._prepared.pop(tuple(examples), None)
        return prepared.result() if prepared else self._read(examples)

    def _read(self, examples: Sequence[int]) -> Batch:
        batch = Batch.pad(
            [self._texts.text(example) for example in examples],
            self._features.read([self._page_row[example] for example in examples]),
            [self._answers[example] for example in examples],
            pad_token_id=self._model.config.pad_token_id,
        )
        return batch.pinned(self._model.device)


def _parts(examples: Sequence[int], size: int) -> list[Sequence[int]]:
    return [examples[start : start + size] for start in range(0, len(examples), size)]
