"""A training split as examples, for which each question is encoded once and each page's image features computed
once."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from evaluator.docvqa.architecture import MAX_ANSWER_LENGTH
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import is_out_of_memory
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.docvqa.vt5 import Batch
from starter_kit.learning.compute import EXACT, Compute
from starter_kit.learning.encoded_examples import EncodedExamples
from starter_kit.learning.page_features import page_features
from starter_kit.learning.trainable_model import TrainableModel

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Documents:
    """Questions of `dataset`, with their first answers, as training examples for `model`.

    Examples are addressed by their index among the dataset's questions. Answers are lower-cased, as the metric
    ignores case.

    Args:
        model: The model that trains on them, which also computes the pages' features.
        examples: The indexes of those that will be used; only their pages are read.
        max_input_tokens: The longest text of an example, question and words.
        on_page: Called with the number of pages read so far, and of all pages.
        keeps_size: Whether steps begin with the size of parts that memory sufficed for in an earlier step. Not in
            private runs, where what one provider's examples need has no influence on another's steps.

    Attributes:
        micro_batch_size: See `Compute`; smaller where memory didn't suffice.
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
        keeps_size: bool = False,
    ) -> None:
        self._model = model
        self._keeps_size = keeps_size
        self._max_input_tokens = max_input_tokens
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

        The examples pass through the model in parts of `micro_batch_size`, the longest first. Where memory runs out,
        the step is computed again in parts half as large.
        """
        at_once = min(len(examples), self.micro_batch_size or len(examples))
        loss, fitting = self._halved(at_once, lambda size: self._backward_in_parts(examples, size))
        if fitting < at_once and self._keeps_size:
            self.micro_batch_size = fitting
        return loss

    def fit(self, batch_size: int, beside_bytes: int) -> None:
        """Set `micro_batch_size` to what memory suffices for, if it doesn't for a batch of this size.

        Tried with texts as long as any can be, and no page: what is public decides, so that a private run needn't find
        out in each provider's steps.

        Args:
            beside_bytes: What else will be in the device's memory during a step.
        """
        at_once = min(batch_size, self.micro_batch_size or batch_size)

        def attempt(size: int) -> None:
            if size == 1:
                # Not tried: the texts of the data may be shorter.
                return
            beside = torch.empty(beside_bytes, dtype=torch.uint8, device=self._model.device)
            text = EncodedText(
                [0] * self._max_input_tokens, np.zeros((self._max_input_tokens, 4), np.float32)
            )
            visual = self._model.config.visual
            features = torch.zeros(size, visual.tokens, visual.hidden_size)
            batch = Batch.pad([text] * size, features, [[0] * MAX_ANSWER_LENGTH] * size)
            self._model.backward(self._model.losses(batch, [size])[0])
            del beside
            self._model.let_go()

        _, fitting = self._halved(at_once, attempt)
        if fitting < at_once:
            self.micro_batch_size = fitting

    def _halved(self, size: int, run: Callable[[int], Result]) -> tuple[Result, int]:
        """Return what `run` makes of a size, or of the first of its halves for which memory suffices, and that size."""
        while True:
            try:
                return run(size), size
            except Exception as error:
                if not is_out_of_memory(error) or size == 1:
                    raise
            # Outside of the handler, nothing holds what the failed pass stored.
            size //= 2
            self._model.let_go()
            self._prepared.clear()
            logger.warning("memory doesn't suffice for a step: set compute.micro_batch_size to %d", size)

    def prepare(self, examples: Sequence[int]) -> None:
        """Read the examples of the next step in another thread, while this one computes the current step."""
        for part in self._parts(examples, self.micro_batch_size or max(1, len(examples)))[:1]:
            self._prepared[tuple(part)] = self._reader.submit(self._read, part)

    @cached_property
    def _reader(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "examples")

    def _backward_in_parts(self, examples: Sequence[int], at_once: int) -> Tensor:
        parts, model = self._parts(examples, at_once), self._model
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

    def _parts(self, examples: Sequence[int], size: int) -> list[Sequence[int]]:
        """Return the examples in parts of a size: the longest texts together, as a part is padded to its longest.

        As they are where they are one part, or where a row depends on those that it is padded with.
        """
        if len(examples) > size and not self._model.config.published_batching:
            examples = sorted(examples, key=self._texts.length, reverse=True)
        return [examples[start : start + size] for start in range(0, len(examples), size)]

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
