"""Full-size scoring, compared with the published and with a careful way: CPU seconds a question and where they go."""

import time
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.generation import Answer, Encoded
from evaluator.docvqa.inference import Answerer
from evaluator.docvqa.linear import linear
from evaluator.docvqa.loading import Shard, shards
from evaluator.docvqa.tokenization import TIGHTENED, EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5
from tests.benchmarks import full_size
from tests.benchmarks.careful_scoring import CarefulScoring
from tests.benchmarks.floors import Speed, expect
from tests.benchmarks.published_scoring import PublishedScoring, Stopwatch

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

PAGES, QUESTIONS = 7, 20
PUBLISHED_BATCH = 10
TARGET, CAREFUL_TARGET = 3.5, 2.0


class TimedGenerator(full_size.EndingGenerator):
    """Times its steps."""

    watch: Stopwatch

    def page_features(self, pixels: Tensor) -> Tensor:
        with self.watch.on("image tower"):
            return super().page_features(pixels)

    def encode(self, texts: Sequence[EncodedText], features: Tensor) -> Encoded:
        with self.watch.on("encoder"):
            return super().encode(texts, features)

    def decode(self, encoded: Encoded) -> list[Answer]:
        with self.watch.on("decoder"):
            return super().decode(encoded)


@pytest.fixture(scope="module")
def model() -> VT5:
    return full_size.make_model()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return full_size.make_tokenizer()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return full_size.make_pages(tmp_path_factory.mktemp("pages") / "data", pages=PAGES, questions=QUESTIONS)


def test_cpu_seconds_a_question(model: VT5, tokenizer: Tokenizer, dataset: Dataset) -> None:
    questions = dataset.questions
    published = PublishedScoring(
        model, tokenizer, batch_size=PUBLISHED_BATCH, length_of=full_size.answer_length
    )
    expected = published.run(dataset, questions)
    careful = CarefulScoring(model, tokenizer, batch_size=PUBLISHED_BATCH, length_of=full_size.answer_length)
    assert careful.run(dataset, questions) == expected

    watch = Stopwatch()
    answerer = Answerer(model, tokenizer)
    answerer.generator = generator = TimedGenerator(model)
    generator.watch = watch
    generator.lengths = {
        tuple(text.ids): full_size.answer_length(question)
        for question, text in zip(questions, _texts(answerer, dataset, questions), strict=True)
    }
    before = time.process_time()
    found: dict[int, str] = {}
    for loaded in answerer.loader(dataset, questions).load(shards(questions, answerer.budget.pages)):
        answers = answerer.answer(loaded)
        found |= {index: text for index, (text, *_) in zip(loaded.shard.questions, answers, strict=True)}
    total = time.process_time() - before
    watch.seconds["reading images, tokens, the rest"] = total - watch.total
    floor = _floor(model, 512 + model.config.visual.tokens) * QUESTIONS

    print(
        f"\nfull size, {QUESTIONS} questions on {PAGES} pages; CPU seconds, {torch.get_num_threads()} threads"
    )
    for name, seconds in (("published", published.watch), ("careful", careful.watch), ("here", watch)):
        print(f"{name}: {seconds.total / QUESTIONS:.2f} s a question")
        for step, spent in seconds.seconds.items():
            print(f"    {step:<34}{spent / QUESTIONS:7.3f} s  {spent / seconds.total:5.0%}")
    print(
        f"floor, the encoder's matrix products alone: {floor / QUESTIONS:.2f} s a question, {floor / total:.0%}"
    )
    speeds = [
        Speed(f"{name} / here", other.total / total, target, other.total / floor)
        for name, other, target in (
            ("published", published.watch, TARGET),
            ("careful", careful.watch, CAREFUL_TARGET),
        )
    ]
    for speed in speeds:
        print(f"{speed.name}: {speed}")
    assert [found[index] for index in range(QUESTIONS)] == [
        _tightened(tokenizer, answer) for answer in expected
    ]
    expect(speeds)


def _texts(answerer: Answerer, dataset: Dataset, questions: list[Question]) -> Iterator[EncodedText]:
    loader = answerer.loader(dataset, questions)
    (loaded,) = loader.load([Shard(list(dataset.pages), list(range(len(questions))))])
    yield from loaded.texts


def _tightened(tokenizer: Tokenizer, answer: str) -> str:
    for loose, tight in TIGHTENED:
        answer = answer.replace(loose, tight)
    return answer


@torch.inference_mode()
def _floor(model: VT5, tokens: int, rows: int = 4) -> float:
    """CPU seconds a question of nothing but the products of the encoder's layers."""
    config = model.config
    inner = config.num_heads * config.d_kv
    x, wide = torch.randn(rows, tokens, config.d_model), torch.randn(rows, tokens, config.d_ff)
    weights = {
        (m, n): torch.randn(n, m)
        for m, n in (
            (config.d_model, 3 * inner),
            (inner, config.d_model),
            (config.d_model, config.d_ff),
            (config.d_ff, config.d_model),
        )
    }
    heads = torch.randn(rows, config.num_heads, tokens, config.d_kv)
    bias = torch.randn(1, config.num_heads, tokens, tokens)
    best = float("inf")
    for _ in range(3):
        before = time.process_time()
        for _ in range(config.num_layers):
            linear(x, weights[config.d_model, 3 * inner])
            scaled_dot_product_attention(heads, heads, heads, attn_mask=bias, scale=1.0)
            linear(x, weights[inner, config.d_model])
            linear(x, weights[config.d_model, config.d_ff], relu=True)
            linear(wide, weights[config.d_ff, config.d_model])
        best = min(best, (time.process_time() - before) / rows)
    return best
