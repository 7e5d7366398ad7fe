"""The memorization test: does a model know answers that it can't see?

Source: Tito et al., "Privacy-Aware Document Visual Question Answering" (2024), sections 5.1 and D.1. What is asked for
are fields that a provider has in common on all of its documents. `hiding` says what is taken out: the evidence, as
published, or the page as a whole, which leaves no trace at all.

Two more passes give the paper's ΔNLS: the answer without a question, and again without that answer on the page.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.leakage.features import Answers, Memorization
from evaluator.leakage.hiding import Hiding, Trial, write_trials
from evaluator.leakage.statistics import Bools, Floats
from evaluator.messages.base import Message
from evaluator.scoring.metrics import GoldAnswers

if TYPE_CHECKING:
    from evaluator.docvqa.inference import Answerer

# Of the providers that are asked twice for a field, so many must answer it alike: documents are read with errors.
CONSTANT_SHARE = 0.9
CONFIDENT = 0.9


class Recall(Message):
    """How well hidden answers are given, for members or nonmembers; shares in [0, 1], None of nothing.

    Attributes:
        confident: How many answers have a confidence of at least 0.9; the last two are of those.
    """

    documents: int
    accuracy: float | None
    anls: float | None
    confident: int
    confident_accuracy: float | None
    confident_anls: float | None


def memorized_questions(dataset: Dataset) -> list[Question]:
    """Return one question a page and field, of the fields that providers have in common; all where none is known."""
    fields = constant_fields(dataset)
    chosen: dict[tuple[str, str], Question] = {}
    for question in dataset.questions:
        if question.key in fields and question.answers:
            chosen.setdefault((question.page, question.key), question)
    return list(chosen.values()) or [question for question in dataset.questions if question.answers]


def constant_fields(*datasets: Dataset) -> set[str]:
    """Return the fields whose answer is the same on all of a provider's pages, by the answers that are known."""
    answers: dict[tuple[str, str], list[str]] = {}
    for dataset in datasets:
        for question in dataset.questions:
            if question.key and question.answers:
                owner = dataset.provider(question.page)
                answers.setdefault((question.key, owner), []).append(question.answers[0].lower().strip())
    alike: dict[str, list[bool]] = {}
    for (key, _), found in answers.items():
        if len(found) > 1:
            alike.setdefault(key, []).append(len(set(found)) == 1)
    return {key for key, found in alike.items() if sum(found) >= CONSTANT_SHARE * len(found)}


def hidden_answers(dataset: Dataset, questions: Sequence[Question], hiding: Hiding, folder: Path) -> Dataset:
    """Return the questions as a data set in which their gold answers are hidden, written to `folder`, which is new."""
    return write_trials(
        folder, dataset, [Trial(question, question.answers, hiding) for question in questions]
    )


def changes(answerer: "Answerer", dataset: Dataset, folder: Path) -> list[float]:
    """Return the `change` of the answer without a question, for each page that is asked about."""
    # It loads torch, which the statistics of the test don't need.
    from evaluator.leakage.measuring import measure

    questions = [
        question.model_copy(update={"question": ""}) for question in first_questions(dataset).values()
    ]
    first = measure(answerer, dataset, questions, losses=False).answers
    trials = [Trial(question, [answer]) for question, answer in zip(questions, first, strict=True)]
    second = measure(answerer, write_trials(folder, dataset, trials), losses=False).answers
    return change(first, second)


def change(first: Sequence[str], second: Sequence[str]) -> list[float]:
    """Return 1 − NLS of answers before and after the first is hidden; NaN where there was none to hide."""
    nls = GoldAnswers([[answer] for answer in first]).score(second).anls
    return [float(1 - one) if answer else float("nan") for answer, one in zip(first, nls, strict=True)]


def first_questions(dataset: Dataset) -> dict[str, Question]:
    """Return the first question about each page that has one, pages in their questions' order."""
    found: dict[str, Question] = {}
    for question in dataset.questions:
        found.setdefault(question.page, question)
    return found


def memorization(
    dataset: Dataset, questions: Sequence[Question], hidden: Answers, changed: Sequence[float]
) -> Memorization:
    """Return G4 of all of the data set's questions: of those asked without their evidence, and of each page's first."""
    nls = dict(zip((question.question_id for question in questions), hidden.nls.tolist(), strict=True))
    firsts = (question.question_id for question in first_questions(dataset).values())
    change = dict(zip(firsts, changed, strict=True))
    asked = [question.question_id for question in dataset.questions]
    return Memorization(
        nls=np.array([nls.get(name, np.nan) for name in asked]),
        change=np.array([change.get(name, np.nan) for name in asked]),
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


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None
