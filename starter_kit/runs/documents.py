"""A training split as examples: every question encoded once, every page's image features computed once."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import IGNORED, VT5, Batch
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.rounds import Client

PAGES_AT_ONCE = 64


class Documents:
    """Questions of `dataset`, with their first answers, as training examples for `model`.

    Examples are addressed by their index among the dataset's questions. Answers are lower-cased, as the metric
    doesn't see case. Features are kept in memory, as float32: V·dv numbers a page.

    Args:
        examples: Those that will be asked for; only their pages are read.
    """

    def __init__(
        self,
        model: VT5,
        tokenizer: Tokenizer,
        dataset: Dataset,
        *,
        examples: Sequence[int],
        max_input_tokens: int,
        on_page: Callable[[int, int], None],
    ) -> None:
        self._model = model
        asked = {example: dataset.questions[example] for example in sorted(examples)}
        pages = list(dict.fromkeys(question.page for question in asked.values()))
        rows = {page: row for row, page in enumerate(pages)}
        self._page_row = {example: rows[question.page] for example, question in asked.items()}
        self._texts = {
            example: tokenizer.encode(
                question.question,
                dataset.pages[question.page].words,
                dataset.pages[question.page].boxes,
                max_input_tokens,
            )
            for example, question in asked.items()
        }
        answers = [question.answers[0].lower() if question.answers else "" for question in asked.values()]
        self._answers = dict(zip(asked, tokenizer.encode_answers(answers), strict=True))
        self._features = _features(model, dataset, pages, on_page)

    @property
    def longest(self) -> int:
        """The example with the longest text, which is the one that takes most memory."""
        return max(self._texts, key=lambda example: len(self._texts[example]))

    def loss(self, examples: Sequence[int]) -> Tensor:
        """The model's mean loss over the tokens of the examples' answers."""
        return self.losses([examples])[0]

    def losses(self, groups: Sequence[Sequence[int]]) -> Tensor:
        """The `loss` (G,) of each group of examples, from one pass of the model over all of them in their order."""
        batch = self._batch([example for group in groups for example in group])
        labels = cast(Tensor, batch.labels)
        is_token = labels != IGNORED
        # Scores of a whole vocabulary are only made where there is a token to be scored.
        with self._model.language_backbone.lm_head.register_forward_pre_hook(
            lambda _, hidden: hidden[0][is_token]
        ):
            scores = self._model.logits(batch)
        of_tokens = nn.functional.cross_entropy(scores, labels[is_token], reduction="none")
        sizes = torch.tensor([len(group) for group in groups])
        of_rows = torch.arange(len(groups)).repeat_interleave(sizes).to(labels.device)
        group = of_rows.repeat_interleave(is_token.sum(1))
        zeros = of_tokens.new_zeros(len(groups))
        return zeros.index_add(0, group, of_tokens) / group.bincount(minlength=len(groups))

    def _batch(self, examples: Sequence[int]) -> Batch:
        return Batch.pad(
            [self._texts[example] for example in examples],
            self._features[[self._page_row[example] for example in examples]],
            [self._answers[example] for example in examples],
            pad_token_id=self._model.config.pad_token_id,
        ).to(next(self._model.parameters()).device)


def clients_of(dataset: Dataset) -> list[Client]:
    """The dataset's clients with their providers' examples. A listed provider may have none.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) There are no clients, or two share a provider.
    """
    examples: dict[str, list[int]] = {}
    for index, question in enumerate(dataset.questions):
        examples.setdefault(dataset.pages[question.page].provider, []).append(index)
    listed = [provider for providers in dataset.info.clients.values() for provider in providers]
    if not listed or len(set(listed)) < len(listed):
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{dataset.folder}/dataset.json, clients",
            expected="each provider at exactly one client",
            found="no clients" if not listed else "a provider that is listed twice",
        )
    return [
        Client(client, {provider: examples.get(provider, []) for provider in providers})
        for client, providers in sorted(dataset.info.clients.items())
    ]


@torch.inference_mode()
def _features(
    model: VT5, dataset: Dataset, pages: Sequence[str], on_page: Callable[[int, int], None]
) -> Tensor:
    """The frozen image tower's output (P, V, dv), on the CPU."""
    device = next(model.parameters()).device
    size = model.config.visual.image_size
    parts = [torch.empty(0, model.config.visual.tokens, model.config.visual.hidden_size)]
    for start in range(0, len(pages), PAGES_AT_ONCE):
        some = pages[start : start + PAGES_AT_ONCE]
        pixels = torch.stack([read_page(dataset.image_path(page), size) for page in some])
        parts.append(model.page_features(pixels.to(device)).cpu())
        on_page(start + len(some), len(pages))
    return torch.cat(parts)
