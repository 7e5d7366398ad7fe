"""The quick way to answers against the plain one, `VT5.generate`, and against the published implementation's."""

import json
import os
from pathlib import Path

import pytest
import torch
from PIL import Image

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.generation import Encoded, Generator
from evaluator.docvqa.images import to_pixels
from evaluator.docvqa.inference import Budget, predict
from evaluator.docvqa.loading import Loader, shards
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch
from tests.evaluator.docvqa.factories import make_dataset, make_model, make_tokenizer

FIXTURE = Path(__file__).parents[1] / "data" / "vt5-reference"
RECEIPTS = Path(os.environ.get("PFL_RECEIPTS") or Path(__file__).parents[4] / "shared" / "data" / "sroie")
BUDGETS = [Budget(1, 1, 1), Budget(500, 3, 2), Budget(100_000, 1_000, 100)]


def talkative(model: VT5) -> VT5:
    """`model` with random weights that give many answers of many lengths, as small random weights don't."""
    with torch.no_grad():
        for name, weight in model.language_backbone.named_parameters():
            if "decoder" in name and weight.ndim == 2:
                weight.mul_(3)
        shared = model.language_backbone.shared.weight
        shared.copy_(torch.randn(shared.shape, generator=torch.Generator().manual_seed(5)))
        shared[model.config.eos_token_id] *= 2.5
    return model


def plainly(model: VT5, tokenizer: Tokenizer, dataset: Dataset) -> list[tuple[str, float]]:
    """Answers and confidences by `VT5.generate`, one question at a time."""
    loader = Loader(dataset, dataset.questions, tokenizer, model.config)
    answers: dict[int, tuple[str, float]] = {}
    for loaded in loader.load(shards(dataset.questions, 50)):
        with torch.no_grad():
            features = model.page_features(loaded.pixels)
        for index, text, row in zip(loaded.shard.questions, loaded.texts, loaded.page_rows, strict=True):
            ids, confidence = model.generate(Batch.pad([text], features[row : row + 1]))
            answers[index] = (tokenizer.decode(ids[0].tolist()), confidence.item())
    return [answers[index] for index in range(len(dataset.questions))]


def assert_same(
    model: VT5, tokenizer: Tokenizer, dataset: Dataset, budget: Budget | None = None
) -> list[tuple[str, float]]:
    expected = plainly(model, tokenizer, dataset)
    found = predict(model, tokenizer, dataset, budget=budget)
    assert [prediction.answer for prediction in found] == [answer for answer, _ in expected]
    assert [prediction.confidence for prediction in found] == pytest.approx(
        [confidence for _, confidence in expected], rel=1e-3, abs=1e-30
    )
    return expected


@pytest.mark.parametrize("budget", BUDGETS)
def test_answers_are_those_of_the_plain_way_whatever_the_budget(tmp_path: Path, budget: Budget) -> None:
    dataset = make_dataset(tmp_path / "data", pages=8)
    answers = assert_same(talkative(make_model()), make_tokenizer(), dataset, budget)
    assert len({len(answer) for answer, _ in answers}) > 4


@pytest.mark.parametrize(
    "changes",
    [
        {"num_decoder_layers": 3, "num_layers": 1},
        {"d_kv": 24},
        {"box_scale": 1},
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ],
)
def test_any_make_of_the_model_answers_as_the_plain_way(tmp_path: Path, changes: dict[str, object]) -> None:
    assert_same(talkative(make_model(**changes)), make_tokenizer(), make_dataset(tmp_path / "data"))


def test_answers_are_the_published_ones() -> None:
    model, tokenizer = open_reference(FIXTURE)
    published = json.loads((FIXTURE / "expected.json").read_text())
    given, size = published["batch"], published["preprocess"]["size"]
    generator = Generator(model)
    features = generator.page_features(
        torch.stack([to_pixels(Image.open(FIXTURE / name), size) for name in given["images"]])
    )
    texts = [
        tokenizer.encode(*page, published["max_input_tokens"])
        for page in zip(given["questions"], given["words"], given["boxes"], strict=True)
    ]
    answers = generator.decode(generator.encode(texts, features))
    alone = [model.generate(Batch.pad([text], features[row : row + 1])) for row, text in enumerate(texts)]
    longest = max(
        range(len(texts)), key=lambda row: len(texts[row])
    )  # it has no padding in the published batch
    assert tokenizer.decode(answers[longest].ids) == published["generated"][longest]
    for answer, (ids, confidence) in zip(answers, alone, strict=True):
        assert tokenizer.decode(answer.ids) == tokenizer.decode(ids[0].tolist())
        assert answer.confidence == pytest.approx(confidence.item(), rel=1e-4)


@pytest.mark.skipif(not RECEIPTS.is_dir(), reason="no real receipts at PFL_RECEIPTS")
def test_answers_to_real_receipts_are_those_of_the_plain_way(tmp_path: Path) -> None:
    from starter_kit.data.receipts import ReceiptSettings, import_receipts

    for kind in RECEIPTS.iterdir():
        (tmp_path / "some" / kind.name).mkdir(parents=True)
        for file in sorted(kind.iterdir())[:60]:
            (tmp_path / "some" / kind.name / file.name).symlink_to(file)
    import_receipts(tmp_path / "some", tmp_path / "public", tmp_path / "secret", ReceiptSettings())
    dataset = Dataset(tmp_path / "secret", "test")
    answers = assert_same(talkative(make_model()), make_tokenizer(), dataset)
    assert len({answer for answer, _ in answers}) > 20


def test_rows_of_parts_of_different_lengths_are_joined_as_they_were() -> None:
    generator = Generator(talkative(make_model()))
    features = torch.randn(3, 5, 64, generator=torch.Generator().manual_seed(2))
    texts = [EncodedText([7] * length + [1], [(0.0, 0.0, 0.0, 0.0)] * (length + 1)) for length in (30, 4, 17)]
    alone = [generator.encode([text], features[row : row + 1]) for row, text in enumerate(texts)]
    together = generator.decode(Encoded.join(alone))
    separately = [generator.decode(encoded)[0] for encoded in alone]
    assert [answer.ids for answer in together] == [answer.ids for answer in separately]


def test_bfloat16_answers_nearly_always_alike(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", pages=20)
    model, tokenizer = make_model(), make_tokenizer()
    exact = predict(model, tokenizer, dataset)
    rough = predict(model, tokenizer, dataset, dtype=torch.bfloat16)
    assert [p.question_id for p in rough] == [p.question_id for p in exact]
    assert all(0 <= p.confidence <= 1.01 for p in rough)
    same = sum(a.answer == b.answer for a, b in zip(rough, exact, strict=True))
    assert same >= 0.7 * len(exact)


@pytest.mark.parametrize("published_batching", [False, True])
def test_weights_that_overflow_give_answers_without_confidence(
    tmp_path: Path, published_batching: bool
) -> None:
    model = make_model(published_batching=published_batching)
    with torch.no_grad():
        for parameter in model.language_backbone.parameters():
            parameter.mul_(1e30)
    answers = predict(model, make_tokenizer(), make_dataset(tmp_path / "data"))
    assert {prediction.confidence for prediction in answers} <= {0.0, 1.0}
