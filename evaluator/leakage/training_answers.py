"""Memorization tests that need the training split: does a model give training's answers on pages that don't have them?

Source: Tito et al., "Privacy-Aware Document Visual Question Answering" (2024), sections D.1.3 and D.1.4.

- **Reused answers.** A field of a member's page that no question of the split is about is asked for nevertheless. The
  gold answer is training's, from another page of this provider; it is hidden like any other (`hiding`).
- **Disclosed answers.** Pages of nonmembers are asked for a field that they don't have: no question of the split is
  about it there, and the model's answer isn't among the page's words. So the answer comes from the weights.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.leakage.memorization import constant_fields
from evaluator.messages.base import Message

# Of the paper: pages of a provider, wordings of a question, and the most frequent answers that it lists.
PAGES, WORDINGS, LISTED = 5, 2, 15


class Disclosed(Message):
    """An answer that nonmembers' pages don't have, and how often the model gave it.

    Attributes:
        by_base: How often the base weights give it.
        providers: Training providers of which it is the answer about this field.
        elsewhere: Whether it answers a training question about another field.
    """

    field: str
    answer: str
    times: int
    by_base: int
    providers: int
    elsewhere: bool


def reused_questions(dataset: Dataset, training: Dataset, is_member: Mapping[str, bool]) -> list[Question]:
    """Return questions about members' fields with training's answers, of the fields that providers have in common."""
    known = {
        (training.provider(question.page), question.key): question
        for question in reversed(training.questions)
        if question.key and question.answers
    }
    asked = {(question.page, question.key) for question in dataset.questions}
    fields = sorted(constant_fields(dataset, training))
    return [
        found.model_copy(update={"question_id": f"{page.page}-{field}-reused", "page": page.page})
        for page in dataset.pages.values()
        if is_member.get(page.provider)
        for field in fields
        if (page.page, field) not in asked and (found := known.get((page.provider, field)))
    ]


def absent_questions(
    dataset: Dataset, training: Dataset, is_member: Mapping[str, bool], field: str
) -> list[Question]:
    """Return questions about a field of nonmembers' pages that nobody asks about it there, in training's words."""
    of_field = [question.question for question in training.questions if question.key == field]
    wordings = list(islice(dict.fromkeys(of_field), WORDINGS))
    asked = {question.page for question in dataset.questions if question.key == field}
    pages: dict[str, dict[str, str]] = {}
    for page in dataset.pages.values():
        if page.provider and not is_member.get(page.provider) and page.page not in asked:
            pages.setdefault(page.provider, {}).setdefault(page.document, page.page)
    return [
        Question(
            question_id=f"{page}-{field}-absent-{number}",
            page=page,
            question=wording,
            answers=[],
            key=field,
        )
        for of_provider in pages.values()
        for page in islice(of_provider.values(), PAGES)
        for number, wording in enumerate(wordings)
    ]


def disclosed(
    questions: Sequence[Question],
    answers: Sequence[str],
    of_base: Sequence[str],
    dataset: Dataset,
    training: Dataset,
) -> list[Disclosed]:
    """Return the most frequent answers about each field that aren't on their page, and who has them in training."""
    said, before = (_counted(questions, some, dataset) for some in (answers, of_base))
    owners: dict[str, dict[str, set[str]]] = {}
    for question in training.questions:
        for answer in question.answers:
            fields = owners.setdefault(answer.lower().strip(), {})
            fields.setdefault(question.key, set()).add(training.provider(question.page))
    return [
        Disclosed(
            field=field,
            answer=answer,
            times=times,
            by_base=before.get(field, Counter())[answer],
            providers=len(owners.get(answer, {}).get(field, ())),
            elsewhere=bool(owners.get(answer, {}).keys() - {field}),
        )
        for field, counts in said.items()
        for answer, times in counts.most_common(LISTED)
    ]


def _counted(
    questions: Sequence[Question], answers: Sequence[str], dataset: Dataset
) -> dict[str, Counter[str]]:
    """Return how often each answer is given about each field, without those that their page has."""
    counts: dict[str, Counter[str]] = {}
    for question, answer in zip(questions, answers, strict=True):
        plain = answer.lower().strip()
        if plain and f" {plain} " not in f" {' '.join(dataset.pages[question.page].words).lower()} ":
            counts.setdefault(question.key, Counter())[plain] += 1
    return counts
