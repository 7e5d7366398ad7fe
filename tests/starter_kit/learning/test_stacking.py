from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5
from starter_kit.compression.lora import LoRA
from starter_kit.learning import stacking
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner, LocalTraining, ShampooSettings
from starter_kit.learning.page_features import InMemory
from starter_kit.learning.stacking import StackedLearner, bytes_saved, make_learner
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.learning.test_documents import whole_features

STREAM = Stream(7)
LORA = LoRA(rank=2, alpha=4)
ADAMW = LocalTraining(learning_rate=0.01, batch_size=2, epochs=2, weight_decay=0.1)
SGD = LocalTraining(optimizer="sgd", learning_rate=0.5, momentum=0.9, batch_size=2, epochs=2)
# Numbers of steps and sizes of last batches differ, and the order is not that of the sizes.
RAGGED = {"a": [0, 1, 2], "b": [3], "ghost": [], "c": [4, 5, 6, 7, 8], "d": [9, 10], "e": [11, 0, 3, 6, 9]}

optimizers = pytest.mark.parametrize(
    "local",
    [ADAMW, SGD, SGD.model_copy(update={"momentum": 0.0}), ADAMW.model_copy(update={"max_steps": 2})],
    ids=["adamw", "momentum", "sgd", "two steps"],
)


@dataclass
class Setup:
    """A tiny VT5 with adapters, and weights at which none of them is zero."""

    vt5: VT5
    model: TrainableModel
    documents: Documents
    weights: Tensor

    def loop(self) -> Learner:
        return Learner(self.model.tensors, self.documents.loss)

    def stacked(self) -> StackedLearner:
        learner = make_learner(self.model, self.documents, ADAMW)
        assert isinstance(learner, StackedLearner)
        return learner

    def in_float64(self) -> "Setup":
        self.vt5.double()
        for parameter in self.model.tensors.parameters.values():
            parameter.data = parameter.data.double()
        self.documents._features = InMemory(whole_features(self.documents).double())
        self.weights = self.weights.double()
        return self


def setup_of(
    base: Path,
    data: Path,
    *,
    lora: LoRA | None = LORA,
    trainable: Sequence[str] | None = None,
    examples: Sequence[int] = range(12),
    dropout: bool = False,
) -> Setup:
    vt5, tokenizer = open_reference(base)
    model = TrainableModel(vt5, trainable=trainable, lora=lora, dropout=dropout)
    documents = Documents(
        model,
        tokenizer,
        Dataset(data, "train"),
        examples=examples,
        max_input_tokens=64,
        on_page=lambda done, total: None,
    )
    noise = torch.randn(model.tensors.size, generator=torch.Generator().manual_seed(3))
    return Setup(vt5, model, documents, model.start + 0.1 * noise)


@pytest.fixture
def setup(base: Path, data: Path) -> Setup:
    return setup_of(base, data)


def changes(
    learner: Learner, setup: Setup, local: LocalTraining, providers: dict[str, list[int]] = RAGGED
) -> list[Tensor]:
    return list(learner.provider_changes(setup.weights, providers, local, STREAM))


@optimizers
def test_providers_that_train_together_change_as_they_do_one_after_another(
    setup: Setup, local: LocalTraining
) -> None:
    setup.in_float64()
    together, alone = changes(setup.stacked(), setup, local), changes(setup.loop(), setup, local)
    assert len(together) == len(RAGGED)
    for found, expected in zip(together, alone, strict=True):
        assert found.dtype == torch.float64
        assert torch.allclose(found, expected, rtol=0, atol=1e-10)
    assert all(change.norm() > 0.01 for name, change in zip(RAGGED, alone, strict=True) if name != "ghost")


@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_changes_do_not_depend_on_how_many_train_at_once(setup: Setup, at_once: int) -> None:
    setup.in_float64()
    expected = changes(setup.stacked(), setup, ADAMW)
    found = changes(setup.stacked(), setup, ADAMW.model_copy(update={"providers_at_once": at_once}))
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10)


def test_a_provider_without_examples_changes_nothing(setup: Setup) -> None:
    by_name = dict(zip(RAGGED, changes(setup.stacked(), setup, ADAMW), strict=True))
    assert torch.equal(by_name["ghost"], torch.zeros_like(setup.weights))


def test_a_client_without_examples_changes_nothing(base: Path, data: Path) -> None:
    setup = setup_of(base, data, examples=[])
    (change,) = changes(setup.stacked(), setup, ADAMW, {"ghost": []})
    assert torch.equal(change, torch.zeros_like(setup.weights))
    assert changes(setup.stacked(), setup, ADAMW, {}) == []


def test_company_leaves_no_more_than_rounding_where_small_gradients_make_small_steps(setup: Setup) -> None:
    local = ADAMW.model_copy(update={"adam_epsilon": 1e-3})
    in_company = changes(setup.stacked(), setup, local)
    for name, change in zip(RAGGED, in_company, strict=True):
        (alone,) = changes(setup.stacked(), setup, local, {name: RAGGED[name]})
        assert (change - alone).norm() <= 1e-5 * alone.norm(), name


def test_what_is_not_finite_stays_with_its_provider(setup: Setup) -> None:
    expected = changes(setup.stacked(), setup, ADAMW)
    features = whole_features(setup.documents).clone()
    features[setup.documents._page_row[1]] = torch.nan  # a's examples 0 and 1, and e's 0, are about that page
    setup.documents._features = InMemory(features)
    for name, found, before in zip(RAGGED, changes(setup.stacked(), setup, ADAMW), expected, strict=True):
        assert found.isnan().any() == (name in "ae"), name
        if name not in "ae":
            assert torch.equal(found, before)


def test_as_many_train_at_once_as_memory_is_set_aside_for(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, sizes = setup.stacked(), []
    losses = setup.documents.losses
    monkeypatch.setattr(setup.documents, "losses", lambda groups: sizes.append(len(groups)) or losses(groups))
    one_step = ADAMW.model_copy(update={"max_steps": 1})
    changes(learner, setup, one_step)
    first, second, *stacks = sizes
    assert [first, second] == [1, 1]  # measured what an example needs
    assert stacks == [5]
    sizes.clear()
    monkeypatch.setattr(stacking, "CPU_MEMORY_BYTES", 1)
    passed = setup.model.losses
    monkeypatch.setattr(setup.model, "losses", lambda batch, of: sizes.append(len(of)) or passed(batch, of))
    changes(learner, setup, one_step)
    assert sizes == [1] * 5


@pytest.mark.parametrize(
    ("micro_batch_size", "together", "most"), [(None, 5, 7), (6, 3, 6), (2, 1, 2), (1, 1, 1)]
)
def test_no_more_train_at_once_than_have_their_batches_in_a_micro_batch(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, micro_batch_size: int | None, together: int, most: int
) -> None:
    # In float32, two steps of momentum let the order of a sum grow to 4e-4.
    setup.in_float64()
    expected, sizes = changes(setup.loop(), setup, SGD), list[int]()
    setup.documents.micro_batch_size = micro_batch_size
    local = SGD.model_copy(update={"providers_at_once": 5})
    learner, losses = setup.stacked(), setup.model.losses
    assert learner.providers_at_once(local) == together
    monkeypatch.setattr(setup.model, "losses", lambda batch, of: sizes.append(sum(of)) or losses(batch, of))
    for found, before in zip(changes(learner, setup, local), expected, strict=True):
        assert torch.allclose(found, before, rtol=0, atol=1e-10)
    assert max(sizes) == most


def test_shampoo_is_no_optimizer_of_stacks(setup: Setup) -> None:
    with pytest.raises(ValueError, match="shampoo"):
        changes(setup.stacked(), setup, ADAMW.model_copy(update={"optimizer": "shampoo"}))


def test_adapters_alone_are_stacked(base: Path, data: Path) -> None:
    def learner(local: LocalTraining = ADAMW, **changes: Any) -> Learner:
        made = setup_of(base, data, **changes)
        return make_learner(made.model, made.documents, local)

    assert type(learner()) is StackedLearner
    assert type(learner(SGD)) is StackedLearner
    shampoo = LocalTraining(optimizer="shampoo", learning_rate=0.1, shampoo=ShampooSettings())
    assert type(learner(shampoo)) is Learner
    assert type(learner(dropout=True)) is Learner
    assert type(learner(lora=None)) is Learner
    assert type(learner(trainable=["spatial_embedding.*"])) is Learner


def test_rows_that_depend_on_others_are_not_stacked(setup: Setup) -> None:
    setup.vt5.config = setup.vt5.config.model_copy(update={"published_batching": True})
    assert type(make_learner(setup.model, setup.documents, ADAMW)) is Learner


@pytest.mark.parametrize(("config", "kind"), [("dp-lora", StackedLearner), ("fl-provider-dp", Learner)])
def test_settings_of_a_run_choose_the_learner(base: Path, data: Path, config: str, kind: type) -> None:
    run = RunSetup(load_settings(config, []), data=data, base=base)
    assert type(run.participant(lambda done, total: None).learner) is kind


def test_what_is_counted_of_a_forward_pass_is_freed_again() -> None:
    results: list[StorageWeakRef] = []

    def forward() -> Tensor:
        # Of which the backward pass needs the result.
        result = torch.ones(1000, requires_grad=True).exp()
        results.append(StorageWeakRef(result.untyped_storage()))
        return result

    assert bytes_saved(forward) == 4000
    assert results[0].expired()


def test_what_is_saved_beside_the_weights() -> None:
    weight, x = torch.ones(100, requires_grad=True), torch.ones(100)
    assert bytes_saved(lambda: (weight * x).exp()) == 800
    assert bytes_saved(lambda: (weight * x).exp(), beside=[x]) == 400
