"""When memory doesn't suffice for a batch: halved, and on."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from evaluator.docvqa.generation import Encoded, Generator
from evaluator.docvqa.inference import Answerer, Budget, is_out_of_memory, predict
from evaluator.docvqa.loading import shards
from tests.evaluator.docvqa.factories import make_dataset, make_model, make_tokenizer

# The process may take little more memory than it has; a batch of all questions needs far more.
CRAMPED = """
import logging, resource, sys
from pathlib import Path
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import Budget, predict
from tests.evaluator.docvqa.factories import make_model, make_tokenizer

logging.basicConfig(format="%(message)s")
model, tokenizer = make_model(max_input_tokens=400), make_tokenizer()
dataset = Dataset(Path(sys.argv[1]), "test")
predict(model, tokenizer, dataset, budget=Budget(800, 4, 4), questions=dataset.questions[-4:])
(used,) = [int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmSize")]
resource.setrlimit(resource.RLIMIT_AS, (used + 220 * 2**20, -1))
for prediction in predict(model, tokenizer, dataset, budget=Budget(10**9, 10**6, 100)):
    print(repr(prediction.answer))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory by /proc and RLIMIT_AS")
def test_a_batch_beyond_the_memory_is_halved_until_it_fits(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", pages=40)
    expected = predict(make_model(max_input_tokens=400), make_tokenizer(), dataset)
    done = subprocess.run(
        [sys.executable, "-c", CRAMPED, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=120,
        env={"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONPATH": ".", "PATH": ""},
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [repr(prediction.answer) for prediction in expected]
    assert "the device's memory doesn't suffice; continuing with Budget(tokens=500000000" in done.stderr


class CrampedGenerator(Generator):
    """Has memory for three questions in the encoder and two in the decoder."""

    def encode(self, texts: object, features: torch.Tensor) -> Encoded:
        if len(features) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 GiB")
        return super().encode(texts, features)  # type: ignore[arg-type]

    def decode(self, encoded: Encoded) -> list:
        if len(encoded) > 2:
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)")
        return super().decode(encoded)


def test_a_budget_that_was_too_large_stays_halved(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", pages=8)
    expected = predict(make_model(), make_tokenizer(), dataset)
    answerer = Answerer(make_model(), make_tokenizer(), budget=Budget(10_000, 1_000, 100))
    answerer.generator = CrampedGenerator(make_model())
    (loaded,) = answerer.loader(dataset, dataset.questions).load(shards(dataset.questions, 100))
    assert [answer for answer, *_ in answerer.answer(loaded)] == [p.answer for p in expected]
    assert answerer.budget.rows < 1_000
    assert answerer.budget.tokens < 10_000


def test_a_single_question_beyond_the_memory_fails_as_it_should(tmp_path: Path) -> None:
    class Hopeless(Generator):
        def encode(self, texts: object, features: object) -> Encoded:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    dataset = make_dataset(tmp_path / "data", pages=3)
    answerer = Answerer(make_model(), make_tokenizer())
    answerer.generator = Hopeless(make_model())
    (loaded,) = answerer.loader(dataset, dataset.questions).load(shards(dataset.questions, 100))
    with pytest.raises(torch.OutOfMemoryError):
        answerer.answer(loaded)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: ..."
            ),
            True,
        ),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_only_a_lack_of_memory_is_taken_for_one(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
