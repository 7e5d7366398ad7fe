"""The whole test at full size on a GPU: seconds, and what share of the card's bfloat16 the encoder gets.

Random weights, answers of real lengths, as many pages and questions as the competition's test set has.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evaluator.docvqa.inference import Answerer
from evaluator.docvqa.loading import shards
from tests.benchmarks import full_size

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine"),
]

PAGES, QUESTIONS = 13_463, 43_591
TARGET_S = 300
TARGET_SHARE = 0.4
MATRIX = 8_192


def test_the_whole_test_set(tmp_path: Path) -> None:
    dataset = full_size.make_pages(tmp_path / "data", pages=PAGES, questions=QUESTIONS)
    model, tokenizer = full_size.make_model(), full_size.make_tokenizer()
    answerer = Answerer(model, tokenizer, device="cuda")
    plan = shards(dataset.questions, answerer.budget.pages)
    loader = answerer.loader(dataset, dataset.questions)
    lengths = {}
    for loaded in loader.load(
        plan
    ):  # also has the images in the page cache, as a second submission finds them
        for index, text in zip(loaded.shard.questions, loaded.texts, strict=True):
            lengths[tuple(text.ids)] = full_size.answer_length(dataset.questions[index])
    answerer.generator = generator = full_size.EndingGenerator(model, dtype=answerer.dtype)
    generator.lengths = lengths

    started, done = time.perf_counter(), 0
    for loaded in loader.load(plan):
        done += len(answerer.answer(loaded))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    print(f"\n{torch.cuda.get_device_name()}: {done} questions on {PAGES} pages in {seconds:.0f} s")
    print(f"peak GPU memory {torch.cuda.max_memory_allocated() / 1e9:.1f} GB")
    assert done == QUESTIONS
    assert seconds < TARGET_S


def test_the_encoders_share_of_the_card(tmp_path: Path) -> None:
    dataset = full_size.make_pages(tmp_path / "data", pages=32, questions=100)
    model = full_size.make_model()
    answerer = Answerer(model, full_size.make_tokenizer(), device="cuda")
    (loaded,) = answerer.loader(dataset, dataset.questions).load(shards(dataset.questions, 32))
    features = answerer.generator.page_features(loaded.pixels)[loaded.page_rows]
    tokens = len(loaded.texts[0]) + features.shape[1]
    rows = answerer.budget.tokens // tokens
    texts, features = loaded.texts[:rows], features[:rows]
    config = model.config
    inner = config.num_heads * config.d_kv
    products = 2 * rows * tokens * (4 * config.d_model * inner + 2 * config.d_model * config.d_ff)
    flop = config.num_layers * (products + 4 * rows * tokens**2 * inner)
    encoder = flop / _seconds(lambda: answerer.generator.encode(texts, features))

    a, b = (torch.randn(MATRIX, MATRIX, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    peak = 2 * MATRIX**3 / _seconds(lambda: a @ b)
    print(f"\n{torch.cuda.get_device_name()}: {rows} rows of {tokens} tokens in {answerer.dtype}")
    print(
        f"encoder {encoder / 1e12:.0f} TFLOP/s, {encoder / peak:.0%} of a {MATRIX}³ product's {peak / 1e12:.0f}"
    )
    assert encoder >= TARGET_SHARE * peak


def _seconds(run: Callable[[], object], repeats: int = 10) -> float:
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / repeats
