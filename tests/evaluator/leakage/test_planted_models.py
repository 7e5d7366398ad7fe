"""Real models, each of its own seed: overfitted to half of the providers, and asked about providers they never saw."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.inference import Answerer
from evaluator.docvqa.loading import Loader, shards
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch
from evaluator.leakage.assessment import Options, assess
from evaluator.leakage.features import Answers, Asked
from evaluator.leakage.measuring import measure
from evaluator.leakage.results import Measure
from evaluator.leakage.statistics import Statistic
from tests.tiny_reference import create_reference, mean_loss

NAMES = [
    first + middle + last
    for first in ("Ash", "Bir", "Ced", "Dog")
    for middle in ("el", "an", "or", "is")
    for last in ("by", "ton", "ley")
]
# A third of the providers train; a third are asked about beside them, and both others make two kinds of strangers.
TRAINED = len(NAMES) // 3
# Enough to overfit. With 30, the least AUC over the seeds depended on how a processor rounds, and was 0.863 to 0.91.
STEPS = 45
# Over the seeds. The least was 0.949 with the instructions of SSE4, AVX2 and AVX-512.
LEAST_AUC = 0.8
# How many models, and how many of them may differ among strangers: one of twenty on average. Seven or more of twenty
# have a chance of 1 in 30,000, four of four 1 in 160,000. With these instructions there were two or three of twenty.
FEW, MANY = (4, 3), (20, 6)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted") / "base"
    create_reference(folder, [*NAMES, "Whose page is this?"], seed=3, vocab_size=300)
    return folder


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A page of each provider, with a number that nothing but training connects with its name."""
    folder = tmp_path_factory.mktemp("planted") / "data"
    (folder / "images").mkdir(parents=True)
    pages, questions = [], []
    for number, name in enumerate(NAMES):
        page = f"page{number}_0"
        Image.new("RGB", (32, 32), (5 * number, 255 - 5 * number, 99)).save(folder / "images" / f"{page}.jpg")
        pages.append(Page(page=page, provider=name, words=[str(number)], boxes=[(0.1, 0.1, 0.3, 0.2)]))
        questions.append(
            Question(question_id=page, page=page, question="Whose page is this?", answers=[name], key="name")
        )
    write_split(folder, "test", pages, questions)
    write_info(folder, DatasetInfo(name="planted", clients={0: NAMES[:TRAINED]}))
    return Dataset(folder, "test")


@pytest.fixture(scope="module")
def before(base: Path, dataset: Dataset) -> Answers:
    """What the base weights do."""
    answerer = Answerer(VT5.from_folder(base), Tokenizer.from_folder(base))
    return measure(answerer, dataset).scored(dataset.questions)


def overfitted(base: Path, dataset: Dataset, trained: Sequence[int]) -> Answers:
    """Return what a model does that was trained on the pages with these numbers."""
    model, tokenizer = VT5.from_folder(base).eval(), Tokenizer.from_folder(base)
    chosen = [dataset.questions[number] for number in trained]
    loader = Loader(dataset, chosen, tokenizer, model.config)
    (loaded,) = loader.load(shards(chosen, len(chosen)))
    with torch.no_grad():
        features = model.page_features(loaded.pixels)
    gold = [chosen[place].answers[0].lower() for place in loaded.shard.questions]
    batch = Batch.pad(loaded.texts, features[loaded.page_rows], tokenizer.encode_answers(gold))
    optimizer = torch.optim.Adam(model.trainable_parameters().values(), lr=3e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean_loss(model, batch).backward()
        optimizer.step()
    return measure(Answerer(model, tokenizer), dataset).scored(dataset.questions)


def auc(after: Answers, before: Answers, members: Sequence[int], others: Sequence[int]) -> Measure:
    """Return what our own attack finds, asked about these two kinds of providers."""
    places = [*members, *others]

    def some(answers: Answers) -> Answers:
        return Answers(
            answers.accuracy[places], answers.nls[places], answers.loss[places], answers.confidence[places]
        )

    names = [NAMES[place] for place in places]
    is_member = {name: place < len(members) for place, name in enumerate(names)}
    asked = Asked(names, is_member, some(after), some(before))
    return assess(asked, options=Options(target_sets=(), resamples=400)).strongest.measures[Statistic.AUC]


@pytest.mark.parametrize(("models", "most"), [FEW, pytest.param(*MANY, marks=pytest.mark.slow)])
def test_a_planted_leak_is_found_in_each_model_and_none_among_strangers(
    base: Path, dataset: Dataset, before: Answers, models: int, most: int
) -> None:
    found, significant = [], 0
    for seed in range(models):
        order = np.random.default_rng(seed).permutation(len(NAMES)).tolist()
        trained, others, strangers = (order[start :: len(NAMES) // TRAINED] for start in range(3))
        after = overfitted(base, dataset, trained)
        leak = auc(after, before, trained, others)
        assert leak.above_base.low > 0
        found.append(leak.value)
        significant += not auc(after, before, others, strangers).above_base.covers_zero
    assert min(found) > LEAST_AUC, found
    assert significant <= most
