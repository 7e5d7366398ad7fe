"""What a model does with questions: its answers, how sure it is of them, and the loss of the gold answers.

The loss is the mean cross-entropy over the tokens of the first gold answer in lower case, as in training, with dropout
off. Each page, and each question with its page, is encoded once, for the answers and the losses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.inference import Answerer
from evaluator.docvqa.loading import shards
from evaluator.leakage.features import Answers
from evaluator.leakage.statistics import Floats
from evaluator.messages.progress import OnProgress, ignore_progress
from evaluator.scoring.metrics import GoldAnswers


@dataclass(frozen=True)
class Measured:
    """One model and Q questions, in their order; `loss` (Q,) is NaN where it wasn't asked for."""

    answers: list[str]
    confidence: Floats
    loss: Floats

    @classmethod
    def joined(cls, parts: Sequence["Measured"], places: Sequence[Sequence[int]]) -> "Measured":
        """Return all parts as one, each question at its place."""
        order = np.argsort([place for some in places for place in some])
        answers = [answer for part in parts for answer in part.answers]
        return cls(
            [answers[place] for place in order],
            np.concatenate([part.confidence for part in parts])[order],
            np.concatenate([part.loss for part in parts])[order],
        )

    def scored(self, questions: Sequence[Question]) -> Answers:
        """Return what an attack sees of the answers to these questions."""
        scores = GoldAnswers([question.answers for question in questions]).score(self.answers)
        return Answers(scores.accuracy, scores.anls, self.loss, self.confidence)


def measure(
    answerer: Answerer,
    dataset: Dataset,
    questions: Sequence[Question] | None = None,
    *,
    losses: bool = True,
    on_progress: OnProgress = ignore_progress,
) -> Measured:
    """Return what a model, in evaluation mode, does with `questions`, all of the data set's by default.

    Args:
        losses: Whether to compute them, which takes another pass through the decoder.
        on_progress: Receives the questions done and their total, after each shard of pages.
    """
    asked = dataset.questions if questions is None else questions
    answers = [""] * len(asked)
    confidence, loss = np.zeros(len(asked)), np.zeros(len(asked))
    done = 0
    for loaded in answerer.loader(dataset, asked).load(shards(asked, answerer.budget.pages)):
        places = loaded.shard.questions
        gold = [asked[place].answers[0].lower() if asked[place].answers else "" for place in places]
        found = answerer.answer(loaded, gold if losses else None)
        for place, of_question in zip(places, found, strict=True):
            answers[place], confidence[place], loss[place] = of_question
        done += len(places)
        on_progress(done, len(asked))
    return Measured(answers, confidence, loss)
