"""What a model does with questions: its answers, how sure it is of them, and the loss of the gold answers.

The loss is the mean cross-entropy over the tokens of the first gold answer in lower case, as in training, with dropout
off. Each page's image is encoded once, for the answers and the losses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.inference import Answerer, Budget
from evaluator.docvqa.loading import LoadedShard, shards
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import IGNORED, VT5, Batch
from evaluator.leakage.features import Answers
from evaluator.leakage.statistics import Floats
from evaluator.progress import OnProgress, ignore_progress
from evaluator.scoring.metrics import GoldAnswers


@dataclass(frozen=True)
class Measured:
    """One model and Q questions, in their order; `loss` (Q,) is NaN where it wasn't asked for."""

    answers: list[str]
    confidence: Floats
    loss: Floats

    def scored(self, questions: Sequence[Question]) -> Answers:
        """Return what an attack sees of the answers to these questions."""
        scores = GoldAnswers([question.answers for question in questions]).score(self.answers)
        return Answers(scores.accuracy, scores.anls, self.loss, self.confidence)


class Measurer:
    """A model with its tokenizer, on a device."""

    def __init__(
        self,
        model: VT5,
        tokenizer: Tokenizer,
        *,
        device: torch.device | str = "cpu",
        budget: Budget | None = None,
    ) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._answerer = Answerer(model, tokenizer, device=device, budget=budget)

    def measure(
        self,
        dataset: Dataset,
        questions: Sequence[Question] | None = None,
        *,
        losses: bool = True,
        on_progress: OnProgress = ignore_progress,
    ) -> Measured:
        """Return what the model does with `questions`, all of the data set's by default.

        Args:
            losses: Whether to compute them, which takes another pass.
            on_progress: Receives the questions done and their total, after each shard of pages.
        """
        asked = dataset.questions if questions is None else questions
        plan = shards(asked, self._answerer.budget.pages)
        answers = [""] * len(asked)
        confidence, loss = np.zeros(len(asked)), np.full(len(asked), np.nan)
        done = 0
        for loaded in self._answerer.loader(dataset, asked).load(plan):
            places = loaded.shard.questions
            features = self._answerer.features(loaded.pixels)
            found = self._answerer.answer(loaded, features=features)
            for place, (answer, sure) in zip(places, found, strict=True):
                answers[place], confidence[place] = answer, sure
            if losses:
                gold = [asked[place].answers[0] if asked[place].answers else "" for place in places]
                loss[places] = self._losses(loaded, features, gold)
            done += len(places)
            on_progress(done, len(asked))
        return Measured(answers, confidence, loss)

    @torch.inference_mode()
    def _losses(self, loaded: LoadedShard, features: Tensor, gold: Sequence[str]) -> Floats:
        """Return the loss (q,) of each of a shard's questions, batched by length within the budget."""
        labels = self._tokenizer.encode_answers([answer.lower() for answer in gold])
        places = sorted(range(len(gold)), key=lambda place: -len(loaded.texts[place]))
        loss = np.zeros(len(gold))
        start = 0
        while start < len(places):
            tokens = len(loaded.texts[places[start]]) + features.shape[1]
            some = places[start : start + max(1, self._answerer.budget.tokens // tokens)]
            batch = Batch.pad(
                [loaded.texts[place] for place in some],
                features[[loaded.page_rows[place] for place in some]],
                [labels[place] for place in some],
                pad_token_id=self._model.config.pad_token_id,
            ).to(self._answerer.device)
            loss[some] = row_losses(self._model.logits(batch), batch.labels).cpu().numpy()
            start += len(some)
        return loss


def row_losses(logits: Tensor, labels: Tensor | None) -> Tensor:
    """Return the mean cross-entropy (B,) of each row's tokens, for logits (B, T, vocabulary) and labels (B, T)."""
    if labels is None:
        raise ValueError("the batch has no labels")
    of_tokens = cross_entropy(logits.float().mT, labels, ignore_index=IGNORED, reduction="none")
    return of_tokens.sum(dim=1) / (labels != IGNORED).sum(dim=1)
