"""A real model that is overfitted to half of the providers: its losses, what it memorized, and the attacks on it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evaluator.docvqa.dataset import Box, Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.inference import Answerer, Budget
from evaluator.docvqa.loading import Loader, shards
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch, row_losses
from evaluator.leakage import models
from evaluator.leakage.assessment import Options, assess
from evaluator.leakage.attacks import Method
from evaluator.leakage.features import Answers, Asked, provider_features
from evaluator.leakage.hiding import Hiding
from evaluator.leakage.measuring import measure
from evaluator.leakage.memorization import (
    change,
    changes,
    exact_test,
    hidden_answers,
    memorization,
    memorized_questions,
    recall,
    recalled_providers,
)
from evaluator.leakage.results import LIKELIHOOD, LeakageResult
from evaluator.leakage.statistics import Statistic
from evaluator.messages.progress import OnProgress, ignore_progress
from tests.evaluator.docvqa.factories import make_dataset, make_model, make_tokenizer
from tests.tiny_reference import create_reference, mean_loss

PROVIDERS = [
    first + second for first in ("Ash", "Bir", "Ced", "Dog") for second in ("by", "ton", "ley", "ham")
]
STEPS = 60


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A page of each provider with its name and number; every other one is of the training."""
    folder = tmp_path_factory.mktemp("leakage") / "data"
    (folder / "images").mkdir(parents=True)
    pages, questions = [], []
    for number, name in enumerate(PROVIDERS):
        page = f"page{number}_0"
        # A tint that the blurring of words leaves, as a logo would be.
        Image.new("RGB", (32, 32), (15 * number, 255 - 15 * number, 99)).save(
            folder / "images" / f"{page}.jpg"
        )
        words = [name, "row", str(number)]
        boxes: list[Box] = [(0.3 * n, 0.1, 0.3 * n + 0.2, 0.2) for n in range(3)]
        pages.append(Page(page=page, provider=name, words=words, boxes=boxes))
        for key, answer in (("provider_name", name), ("number", str(number))):
            questions.append(
                Question(
                    question_id=f"{page}-{key}", page=page, question=f"{key}?", answers=[answer], key=key
                )
            )
    write_split(folder, "test", pages, questions)
    write_info(folder, DatasetInfo(name="leakage", clients={0: PROVIDERS[::2]}))
    return Dataset(folder, "test")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leakage") / "base"
    create_reference(folder, [*PROVIDERS, "provider_name? number? row"], seed=3, vocab_size=300)
    return folder


@pytest.fixture(scope="module")
def answerers(base: Path, dataset: Dataset) -> tuple[Answerer, Answerer]:
    """The model that was trained on every other provider, and the base weights."""
    tokenizer = Tokenizer.from_folder(base)
    trained = VT5.from_folder(base).eval()
    chosen = [q for q in dataset.questions if dataset.pages[q.page].provider in PROVIDERS[::2]]
    loader = Loader(dataset, chosen, tokenizer, trained.config)
    (loaded,) = loader.load(shards(chosen, len(dataset.pages)))
    with torch.no_grad():
        features = trained.page_features(loaded.pixels)
    batch = Batch.pad(
        loaded.texts,
        features[loaded.page_rows],
        tokenizer.encode_answers([chosen[index].answers[0].lower() for index in loaded.shard.questions]),
    )
    optimizer = torch.optim.Adam(trained.trainable_parameters().values(), lr=3e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean_loss(trained, batch).backward()
        optimizer.step()
    return Answerer(trained, tokenizer), Answerer(VT5.from_folder(base), tokenizer)


def test_a_rows_loss_is_the_mean_over_its_own_tokens() -> None:
    logits = torch.zeros(2, 2, 4)
    logits[0, 0, 1] = 5.0
    labels = torch.tensor([[1, 2], [3, -100]])
    first = (-5 + np.log(np.exp(5) + 3) + np.log(4)) / 2
    assert row_losses(logits, labels).tolist() == pytest.approx([first, np.log(4)])


@pytest.mark.parametrize(
    ("budget", "published_batching"),
    [
        (Budget(1, 1, 1), False),
        (Budget(500, 3, 2), False),
        (Budget(100_000, 1_000, 100), False),
        # There a loss depends on its batch.
        (Budget(1, 1, 1), True),
    ],
)
def test_losses_are_those_of_the_plain_way_whatever_the_budget(
    tmp_path: Path, budget: Budget, published_batching: bool
) -> None:
    dataset = make_dataset(tmp_path / "data")
    gold = ["12.50", "INVOICE net 30 days", "", "RM", "10/17/18"]
    questions = [
        question.model_copy(update={"answers": [gold[place % len(gold)]]})
        for place, question in enumerate(dataset.questions)
    ]
    model, tokenizer = make_model(published_batching=published_batching), make_tokenizer()
    found = measure(Answerer(model, tokenizer, budget=budget), dataset, questions)

    expected = []
    for question in questions:
        loader = Loader(dataset, [question], tokenizer, model.config)
        (loaded,) = loader.load(shards([question], 1))
        labels = tokenizer.encode_answers([question.answers[0].lower()])
        with torch.no_grad():
            features = model.page_features(loaded.pixels)
            expected.append(mean_loss(model, Batch.pad(loaded.texts, features, labels)).item())
    assert found.loss == pytest.approx(expected, rel=1e-4)
    assert len({round(value, 3) for value in expected}) > 5
    without = measure(Answerer(model, tokenizer, budget=budget), dataset, questions, losses=False)
    assert (without.answers, bool(np.isnan(without.loss).all())) == (found.answers, True)


def test_what_a_model_was_trained_on_is_found(
    answerers: tuple[Answerer, Answerer], dataset: Dataset, tmp_path: Path
) -> None:
    trained, before = (measure(one, dataset).scored(dataset.questions) for one in answerers)
    owners = [dataset.pages[question.page].provider for question in dataset.questions]
    is_member = {name: place % 2 == 0 for place, name in enumerate(PROVIDERS)}
    asked = Asked(owners, is_member, trained, before)
    found = assess(asked, options=Options(target_sets=[0, 5], methods=[Method.AZK], resamples=200))
    ours = found.strongest
    assert ours.attack == LIKELIHOOD
    assert ours.measures[Statistic.AUC].value > 0.9
    assert not ours.measures[Statistic.AUC].above_base.covers_zero
    # No provider has five questions.
    assert [left[:24] for left in found.left_out] == ["T_5: E_LEAKAGE_PROVIDERS"]
    assert {attack.attack for attack in found.attacks} == {"AZK", LIKELIHOOD}

    # Hidden: names, of which the model knows those of members.
    questions = [question for question in dataset.questions if question.key == "provider_name"]
    trials = hidden_answers(dataset, questions, Hiding.EVIDENCE, tmp_path / "hidden")
    hidden, untrained = (measure(one, trials, losses=False).scored(questions) for one in answerers)
    member = np.array([place % 2 == 0 for place in range(len(PROVIDERS))])
    assert (recall(hidden, member).accuracy or 0) > (recall(hidden, ~member).accuracy or 0)
    assert recall(untrained, member).accuracy == 0
    assert set(recalled_providers(hidden, PROVIDERS)) <= set(PROVIDERS[::2])

    changed = changes(answerers[0], dataset, tmp_path / "changes")
    asked = Asked(owners, is_member, trained, before, memorization(dataset, questions, hidden, changed))
    g4 = provider_features(asked).g4
    assert g4 is not None
    assert g4[:, 0].sum() == pytest.approx(hidden.nls.sum())


def test_no_answer_is_none_that_stays_where_it_is_hidden() -> None:
    found = change(["", "abcd", "abcd"], ["", "abcd", "abc"])
    assert found == pytest.approx([np.nan, 0, 1 / 4], nan_ok=True)


def test_an_interrupted_assessment_measures_only_the_rest(
    base: Path, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "PIECE_PAGES", 5)
    options = Options(memorization=False, target_sets=(), resamples=100)

    def assessed(kept: Path, on_progress: OnProgress = ignore_progress) -> LeakageResult:
        return models.assess_checkpoint(
            base / "model.safetensors", base, dataset, options=options, kept=kept, on_progress=on_progress
        )

    def interrupt(done: int, _of: int) -> None:
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assessed(tmp_path / "kept", interrupt)
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").glob("*/*.json")}
    assert len(finished) == 2
    assert assessed(tmp_path / "kept") == assessed(tmp_path / "other")
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


def test_questions_of_another_training_split_are_measured_again(
    base: Path, dataset: Dataset, tmp_path: Path
) -> None:
    folder = shutil.copytree(dataset.folder, tmp_path / "data")
    pages, numbers = list(dataset.pages.values()), [one for one in dataset.questions if one.key == "number"]
    names = [one for one in dataset.questions if one.key != "number"]
    write_split(folder, "few", pages, names)
    for split, wording in (("first", "Which row?"), ("second", "Row?")):
        asked = [one.model_copy(update={"question": wording}) for one in numbers]
        write_split(folder, split, pages, asked)
        models.assess_checkpoint(
            base / "model.safetensors",
            base,
            Dataset(folder, "few"),
            options=Options(memorization=False, target_sets=(), resamples=100),
            training=Dataset(folder, split),
            absent=("number",),
            kept=tmp_path / "kept",
        )
    (kept,) = (tmp_path / "kept").iterdir()
    assert len(list(kept.glob("absent-*.json"))) == 2


def test_hidden_are_the_answers_that_a_provider_gives_on_all_pages(dataset: Dataset, tmp_path: Path) -> None:
    # Asked once each, no field is known to be constant: all are hidden.
    assert memorized_questions(dataset) == dataset.questions
    pages = [Page(page=f"{number}_0", provider="Ash", words=[], boxes=[]) for number in range(2)]
    questions = [
        Question(question_id=f"{page.page}-{key}", page=page.page, question="?", answers=[answer], key=key)
        for page in pages
        for key, answer in (("name", "Ash"), ("number", page.page))
    ]
    write_split(tmp_path, "test", pages, questions)
    chosen = memorized_questions(Dataset(tmp_path, "test"))
    assert [question.question_id for question in chosen] == ["0_0-name", "1_0-name"]


def test_fishers_test_is_exact() -> None:
    # Of 4 members 3, of 4 others none: C(4,3)·C(4,0)/C(8,3).
    assert exact_test(4, 3, 4, 0) == pytest.approx(4 / 56)
    assert exact_test(4, 0, 4, 0) == 1


def test_recall_counts_confident_answers_by_themselves() -> None:
    answers = Answers(
        accuracy=np.array([1.0, 0, 1, 0]),
        nls=np.array([1.0, 0.6, 1, 0]),
        loss=np.zeros(4),
        confidence=np.array([0.9, 0.95, 0.2, 0.1]),
    )
    found = recall(answers, np.array([True, True, True, False]))
    assert (found.documents, found.confident) == (3, 2)
    assert (found.accuracy, found.anls) == pytest.approx((2 / 3, 2.6 / 3))
    assert (found.confident_accuracy, found.confident_anls) == pytest.approx((1 / 2, 0.8))
    assert recall(answers, np.zeros(4, dtype=bool)).accuracy is None
