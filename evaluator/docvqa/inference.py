"""Answers of a model to the questions of a dataset.

An answer doesn't depend on which questions share a batch with its own, so neither on the token budget nor on the
order of the questions; between budgets and devices, arithmetic differs by rounding only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch

# Tokens in one pass: a few seconds of full-size work on a CPU, a few gigabytes on a GPU.
TOKEN_BUDGET_CPU = 3_000
TOKEN_BUDGET_GPU = 60_000

# Pages whose features are held at a time, and whose questions are batched by length.
PAGES_AT_ONCE = 256


@dataclass(frozen=True)
class Prediction:
    """The answer to one question. `confidence` is in [0, 1]; see `VT5.generate`."""

    question_id: str
    answer: str
    confidence: float


def predict(
    model: VT5,
    tokenizer: Tokenizer,
    dataset: Dataset,
    *,
    device: torch.device | str = "cpu",
    token_budget: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    questions: Sequence[Question] | None = None,
) -> list[Prediction]:
    """The model's answers to `questions`, all of the dataset's by default, in their order.

    Moves the model to `device`. Every page image is read and encoded once. `token_budget` bounds the tokens,
    text and visual, of one pass through the model; a single question may exceed it. `on_progress` is told the
    questions done and their total after every pass, so every few seconds.

    Raises `ProblemError` (`E_DATASET_FORMAT`) where a page's image can't be read.
    """
    device = torch.device(device)
    if token_budget is None:
        token_budget = TOKEN_BUDGET_CPU if device.type == "cpu" else TOKEN_BUDGET_GPU
    asked = dataset.questions if questions is None else questions
    was_training = model.training
    model.to(device).eval()
    try:
        predictor = _Predictor(model, tokenizer, dataset, device, token_budget, on_progress, asked)
        return predictor.run()
    finally:
        model.train(was_training)


@dataclass
class _Predictor:
    """One call of `predict`: what all its steps share, and how far it has come."""

    model: VT5
    tokenizer: Tokenizer
    dataset: Dataset
    device: torch.device
    token_budget: int
    on_progress: Callable[[int, int], None] | None
    questions: Sequence[Question]
    predictions: dict[int, Prediction] = field(default_factory=dict)

    @torch.inference_mode()
    def run(self) -> list[Prediction]:
        by_page: dict[str, list[int]] = {}
        for index, question in enumerate(self.questions):
            by_page.setdefault(question.page, []).append(index)
        for pages in _slices(list(by_page), PAGES_AT_ONCE):
            features = self._features(pages)
            self._answer(
                [(index, row) for row, page in enumerate(pages) for index in by_page[page]], features
            )
        return [self.predictions[index] for index in range(len(self.questions))]

    def _features(self, pages: Sequence[str]) -> Tensor:
        """The image tower's output (P, V, dv) for `pages`."""
        visual = self.model.config.visual
        parts = []
        for some in _slices(pages, max(1, self.token_budget // visual.tokens)):
            pixels = torch.stack(
                [read_page(self.dataset.image_path(page), visual.image_size) for page in some]
            )
            parts.append(self.model.page_features(pixels.to(self.device)))
            self._report()
        return torch.cat(parts)

    def _answer(self, asked: Sequence[tuple[int, int]], features: Tensor) -> None:
        """Answer questions, each given by its index and its page's row in `features`."""
        texts = {index: self._encode(self.questions[index]) for index, _ in asked}
        longest_first = sorted(asked, key=lambda pair: -len(texts[pair[0]]))
        while longest_first:
            length = len(texts[longest_first[0][0]]) + features.shape[1]
            size = max(1, self.token_budget // length)
            group, longest_first = longest_first[:size], longest_first[size:]
            batch = Batch.pad(
                [texts[index] for index, _ in group],
                features[[row for _, row in group]],
                pad_token_id=self.model.config.pad_token_id,
            )
            ids, confidences = self.model.generate(batch.to(self.device))
            for (index, _), answer, confidence in zip(group, ids.tolist(), confidences.tolist(), strict=True):
                self.predictions[index] = Prediction(
                    self.questions[index].question_id, self.tokenizer.decode(answer), confidence
                )
            self._report()

    def _encode(self, question: Question) -> EncodedText:
        page = self.dataset.pages[question.page]
        return self.tokenizer.encode(
            question.question, page.words, page.boxes, self.model.config.max_input_tokens
        )

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(len(self.predictions), len(self.questions))


def _slices(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))
