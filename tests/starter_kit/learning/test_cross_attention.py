from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5
from starter_kit.compression.lora import LoRA
from starter_kit.learning.cross_attention import shorten_cross_attention
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner
from starter_kit.learning.page_features import InMemory
from starter_kit.learning.stacking import bytes_saved
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream
from tests.starter_kit.learning.test_documents import whole_features

STREAM = Stream(7)
EXAMPLES = range(6)  # of different lengths, texts and answers
EVERYWHERE = [
    "language_backbone.*.q",
    "language_backbone.*.k",
    "language_backbone.*.v",
    "language_backbone.*.o",
]


class Exact:
    """A tiny VT5 in float64, at weights at which no adapter is zero."""

    def __init__(self, base: Path, data: Path, lora: LoRA | None, *, dropout: bool = False) -> None:
        self.model, tokenizer = open_reference(base)
        trainable = TrainableModel(self.model, lora=lora, dropout=dropout, fast_layers=False)
        self.tensors = trainable.tensors
        self.documents = Documents(
            trainable,
            tokenizer,
            Dataset(data, "train"),
            examples=EXAMPLES,
            max_input_tokens=64,
            on_page=lambda done, total: None,
        )
        self.model.double()
        for parameter in self.tensors.parameters.values():
            parameter.data = parameter.data.double()
        self.documents._features = InMemory(whole_features(self.documents).double())
        noise = torch.randn(self.tensors.size, generator=torch.Generator().manual_seed(3))
        self.weights = (trainable.start + 0.1 * noise).double()

    def gradient(self) -> Tensor:
        torch.manual_seed(5)
        learner = Learner(self.tensors, self.documents.loss)
        return learner.gradient(self.weights, EXAMPLES, batch_size=len(EXAMPLES))


def answers(model: VT5, documents: Documents) -> list[list[int]]:
    found: list[list[int]] = model.generate(documents._batch(EXAMPLES))[0].tolist()
    return found


@pytest.mark.parametrize(
    "lora",
    [None, LoRA(), LoRA(targets=EVERYWHERE), LoRA(targets=["*decoder*.EncDecAttention.[vo]"])],
    ids=["no adapters", "queries and values", "keys too", "values and output"],
)
def test_gradients_are_those_of_t5(base: Path, data: Path, lora: LoRA | None) -> None:
    exact = Exact(base, data, lora)
    expected = exact.gradient()
    shorten_cross_attention(exact.model)
    assert expected.norm() > 0.01
    assert torch.allclose(exact.gradient(), expected, rtol=0, atol=1e-10)


def test_under_dropout_masks_fall_where_they_fell(base: Path, data: Path) -> None:
    exact = Exact(base, data, LoRA(dropout=0.5), dropout=True)
    expected = exact.gradient()
    shorten_cross_attention(exact.model)
    assert torch.equal(exact.gradient(), expected)


def test_answers_stay(base: Path, data: Path) -> None:
    exact = Exact(base, data, LoRA())
    before = answers(exact.model, exact.documents)
    shorten_cross_attention(exact.model)
    assert answers(exact.model, exact.documents) == before


@pytest.mark.parametrize(("targets", "less"), [(["*.q", "*.v"], True), (EVERYWHERE, False)])
def test_keys_and_values_of_the_page_are_not_kept_unless_keys_have_adapters(
    base: Path, data: Path, targets: Sequence[str], less: bool
) -> None:
    exact = Exact(base, data, LoRA(targets=list(targets)))
    before = bytes_saved(lambda: exact.documents.loss([0]))
    shorten_cross_attention(exact.model)
    after = bytes_saved(lambda: exact.documents.loss([0]))
    assert (after < before) is less
