"""ANLS and accuracy of a whole test set, compared with the published metric's loop and with a careful one, in one run.

The published reference does what the published code does, in its order: batch by batch, a question at a time; both
texts lower-cased and stripped, accuracy, then `editdistance` of every gold answer, one call each. The careful one is a
loop around rapidfuzz, which stops at the threshold. Ours is timed twice: with the gold answers made ready before, as a
test set's are the same for every checkpoint, and from raw texts.
"""

import random
import string
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import editdistance
import pytest
from rapidfuzz.distance import Levenshtein

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.scoring.groups import group_scores
from evaluator.scoring.metrics import GoldAnswers, Scores

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

QUESTIONS, PAGES = 43_591, 13_463  # of the competition's test set
BATCH = 10
MOST_S = 0.1
LEAST_RATIO = 8  # 15 is the aim
LEAST_CAREFUL_RATIO = 1.5
MOST_GROUPS_S = 2.0  # of CPU; 0.4 and 0.7 are measured
REPEATS = 31

Work = Callable[[], object]


class PublishedMetric:
    """The published definition, as a loop over the questions of a batch; each question may have a type of its own."""

    threshold = 0.5

    def __init__(self, *, case_sensitive: bool = False) -> None:
        self.case_sensitive = case_sensitive
        self.anls: list[float] = []
        self.accuracy: list[float] = []

    def add(self, predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> None:
        kinds = ["string" for _ in predictions]
        for row in range(len(predictions)):
            gold = [self.normalized(answer) for answer in answers[row]]
            predicted = self.normalized(predictions[row])
            self.accuracy.append(self.accuracy_of(gold, predicted, kinds[row]))
            self.anls.append(self.anls_of(gold, predicted, kinds[row]))

    def normalized(self, text: str) -> str:
        return (text if self.case_sensitive else text.lower()).strip()

    def accuracy_of(self, gold: list[str], predicted: str, kind: str) -> float:
        if kind == "not-answerable":
            return float(predicted in ("", "none"))
        if predicted == "none":
            return 0.0
        return float(any(predicted == answer for answer in gold))

    def anls_of(self, gold: list[str], predicted: str, kind: str) -> float:
        if len(predicted) == 0:
            return 0.0
        if kind == "not-answerable":
            return float(predicted in ("", "none"))
        if predicted == "none":
            return 0.0
        best = max(
            1 - editdistance.eval(answer, predicted) / max(len(answer), len(predicted)) for answer in gold
        )
        return best if best >= self.threshold else 0.0


def published(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> Scores:
    metric = PublishedMetric()
    for start in range(0, len(predictions), BATCH):
        batch = slice(start, start + BATCH)
        metric.add(predictions[batch], answers[batch])
    count = len(predictions)
    return Scores(sum(metric.anls) / count, sum(metric.accuracy) / count, count)


def careful(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> Scores:
    anls = accuracy = 0.0
    for text, answers_of_one in zip(predictions, answers, strict=True):
        predicted = text.lower().strip()
        if predicted in ("", "none"):
            continue
        gold = [answer.lower().strip() for answer in answers_of_one]
        accuracy += predicted in gold
        anls += max(
            Levenshtein.normalized_similarity(predicted, answer, score_cutoff=PublishedMetric.threshold)
            for answer in gold
        )
    count = len(predictions)
    return Scores(anls / count, accuracy / count, count)


def answer(rng: random.Random) -> str:
    """What invoices are asked for: amounts, dates, numbers, names, addresses."""
    word = lambda: "".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))).capitalize()  # noqa: E731
    kinds: list[Callable[[], str]] = [
        lambda: f"${rng.randint(1, 99_999):,}.{rng.randint(0, 99):02}",
        lambda: f"{rng.randint(1, 12):02}/{rng.randint(1, 28):02}/{rng.randint(10, 24)}",
        lambda: f"{rng.randint(10_000, 9_999_999)}",
        lambda: " ".join(word() for _ in range(rng.randint(1, 4))),
        lambda: f"{rng.randint(1, 9999)} {word()} {word()} St, {word()}, {rng.randint(10_000, 99_999)}",
    ]
    return rng.choice(kinds)()


def prediction(rng: random.Random, gold: str) -> str:
    """Right for six in ten, a few characters off for two, another answer for the rest."""
    chance = rng.random()
    if chance < 0.6:
        return gold.lower()
    if chance < 0.8:
        letters = list(gold)
        for _ in range(rng.randint(1, 3)):
            letters[rng.randrange(len(letters))] = rng.choice(string.printable[:62])
        return "".join(letters)
    return "" if chance < 0.81 else answer(rng)


@pytest.fixture(scope="module")
def questions() -> tuple[list[str], list[list[str]]]:
    """Predictions, and one gold answer a question, as in the competition's data."""
    rng = random.Random(43_591)
    answers = [[answer(rng)] for _ in range(QUESTIONS)]
    return [prediction(rng, gold[0]) for gold in answers], answers


def fastest_s(work: Work) -> float:
    """Of `REPEATS` runs the fastest: what the machine does when nothing else disturbs it."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def test_a_test_set_is_scored_many_times_as_fast_as_by_the_published_loop(
    questions: tuple[list[str], list[list[str]]],
) -> None:
    predictions, answers = questions
    gold = GoldAnswers(answers)
    ours = gold.score(predictions).means()
    for reference in (published(predictions, answers), careful(predictions, answers)):
        assert (ours.anls, ours.accuracy) == pytest.approx((reference.anls, reference.accuracy), abs=1e-12)
    reference_s = fastest_s(lambda: published(predictions, answers))
    careful_s = fastest_s(lambda: careful(predictions, answers))
    ready_s = fastest_s(lambda: gold.score(predictions).means())
    raw_s = fastest_s(lambda: GoldAnswers(answers).score(predictions).means())
    print(f"ANLS and accuracy of {QUESTIONS:,} questions")
    print(f"{'':<32}      ms   published / this   careful / this")
    for name, seconds in (
        ("published loop", reference_s),
        ("careful loop, rapidfuzz", careful_s),
        ("gold answers made ready before", ready_s),
        ("from raw texts", raw_s),
    ):
        print(f"{name:<32}{seconds * 1e3:8.1f}{reference_s / seconds:19.1f}{careful_s / seconds:17.2f}")
    assert raw_s < MOST_S
    assert reference_s / ready_s >= LEAST_RATIO
    assert careful_s / ready_s >= LEAST_CAREFUL_RATIO


@pytest.mark.parametrize("providers", [500, 0])
def test_groups_with_intervals_take_no_time_beside_inference(
    tmp_path: Path, questions: tuple[list[str], list[list[str]]], providers: int
) -> None:
    dataset, scores = (
        grouped(tmp_path, questions[1], providers),
        GoldAnswers(questions[1]).score(questions[0]),
    )
    assert len(dataset.questions) == QUESTIONS  # read before the clock starts
    start = time.process_time()
    groups = group_scores(dataset, scores)
    taken_s = time.process_time() - start
    clusters = f"{providers} providers" if providers else f"{PAGES:,} documents without providers"
    print(f"{len(groups)} groups of {QUESTIONS:,} questions about {clusters}: {taken_s * 1e3:.0f} ms of CPU")
    assert taken_s < MOST_GROUPS_S


def grouped(folder: Path, answers: list[list[str]], providers: int) -> Dataset:
    """Questions of 20 keys about pages of so many providers, half of them training providers."""
    rng = random.Random(1)
    names = [f"provider {number}" for number in range(providers)]
    pages = [
        Page(page=f"d{number}_0", provider=rng.choice(names) if names else "", words=[], boxes=[])
        for number in range(PAGES)
    ]
    questions = [
        Question(
            question_id=str(number),
            page=rng.choice(pages).page,
            question="What?",
            answers=gold,
            key=f"key {rng.randrange(20)}",
        )
        for number, gold in enumerate(answers)
    ]
    write_info(folder, DatasetInfo(name="benchmark", clients={0: names[::2]} if names else {}))
    write_split(folder, "test", pages, questions)
    return Dataset(folder, "test")
