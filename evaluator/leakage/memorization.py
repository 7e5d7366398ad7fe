"""The memorization test: does a model know answers that it can't see?

Source: Tito et al., "Privacy-Aware Document Visual Question Answering" (2024), sections 5.1 and D.1. What is asked for
are fields that a provider has in common on all of its documents. `hiding` says what is taken out: the evidence, as
published, or the page as a whole, which leaves no trace at all.

Two more passes give the paper's ΔNLS: the answer without a question, and again without that answer on the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.leakage.features import Answers, Memorization
from evaluator.leakage.hiding import Hiding, Trial, write_trials
from evaluator.leakage.measuring import Measurer
from evaluator.leakage.statistics import Bools
from evaluator.scoring.metrics import GoldAnswers

# The same on all of a provider's documents. Where a data set names none of them, all of its questions are asked.
PROVIDER_FIELDS = ("provider_name", "provider_email", "tax_number", "phone", "company", "address")
CONFIDENT = 0.9


@dataclass(frozen=True)
class Recall:
    """How well hidden answers are given, for members or nonmembers; shares in [0, 1], NaN of nothing.

    Attributes:
        confident: How many answers have a confidence of at least 0.9; the last two are of those.
    """

    documents: int
    accuracy: float
    anls: float
    confident: int
    confident_accuracy: float
    confident_anls: float


def memorized_questions(dataset: Dataset) -> list[Question]:
    """Return one question a page and field, of the fields that providers have in common; all where there is none."""
    chosen: dict[tuple[str, str], Question] = {}
    for question in dataset.questions:
        if question.key in PROVIDER_FIELDS and question.answers:
            chosen.setdefault((question.page, question.key), question)
    return list(chosen.values()) or [question for question in dataset.questions if question.answers]


def ask_hidden(
    measurers: Sequence[Measurer],
    dataset: Dataset,
    questions: Sequence[Question],
    hiding: Hiding,
    folder: Path,
) -> list[Answers]:
    """Return what each model answers where the gold answers are hidden; `folder` is new, and filled."""
    trials = [Trial(question, question.answers, hiding) for question in questions]
    hidden = write_trials(folder, dataset, trials)
    return [measurer.measure(hidden, losses=False).scored(questions) for measurer in measurers]


def changes(measurer: Measurer, dataset: Dataset, folder: Path) -> dict[str, float]:
    """Return 1 − NLS of the answers without a question, for each page: with and without the first on the page."""
    asked = {question.page: question.model_copy(update={"question": ""}) for question in dataset.questions}
    questions = list(asked.values())
    first = measurer.measure(dataset, questions, losses=False).answers
    trials = [Trial(question, [answer]) for question, answer in zip(questions, first, strict=True)]
    second = measurer.measure(write_trials(folder, dataset, trials), losses=False).answers
    similar = GoldAnswers([[answer] for answer in first]).score(second).anls
    return dict(zip(asked, (1 - similar).tolist(), strict=True))


def memorization(
    dataset: Dataset, questions: Sequence[Question], hidden: Answers, changed: Mapping[str, float]
) -> Memorization:
    """Return G4 of all of the data set's questions, from those asked without their evidence and from pages."""
    nls = dict(zip((question.question_id for question in questions), hidden.nls.tolist(), strict=True))
    first_of_page = {question.page: question.question_id for question in reversed(dataset.questions)}
    return Memorization(
        nls=np.array([nls.get(question.question_id, np.nan) for question in dataset.questions]),
        change=np.array(
            [
                changed.get(question.page, np.nan)
                if first_of_page[question.page] == question.question_id
                else np.nan
                for question in dataset.questions
            ]
        ),
    )


def recall(answers: Answers, chosen: Bools) -> Recall:
    """Return how well the chosen (Q,) of the hidden answers are given."""
    sure = chosen & (answers.confidence >= CONFIDENT)
    return Recall(
        documents=int(chosen.sum()),
        accuracy=_mean(answers.accuracy[chosen]),
        anls=_mean(answers.nls[chosen]),
        confident=int(sure.sum()),
        confident_accuracy=_mean(answers.accuracy[sure]),
        confident_anls=_mean(answers.nls[sure]),
    )


def recalled_providers(answers: Answers, providers: Sequence[str]) -> dict[str, float]:
    """Return the accuracy of each provider of which at least one hidden answer is given exactly."""
    right: dict[str, list[float]] = {}
    for provider, accuracy in zip(providers, answers.accuracy.tolist(), strict=True):
        right.setdefault(provider, []).append(accuracy)
    return {provider: float(np.mean(found)) for provider, found in right.items() if any(found)}


def exact_test(members: int, recalled_members: int, others: int, recalled_others: int) -> float:
    """Return Fisher's p-value, one-sided: are hidden answers given for more of the members than of the others?"""
    from scipy.stats import hypergeom

    total = recalled_members + recalled_others
    return float(hypergeom.sf(recalled_members - 1, members + others, members, total))


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
