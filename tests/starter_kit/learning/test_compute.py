"""What saves memory or time in a step, against the same step without it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import Batch
from starter_kit.compression.lora import LoRA
from starter_kit.learning.compute import Compute
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner, LocalStep, LocalTraining
from starter_kit.learning.pacing import steps_of
from starter_kit.learning.stacking import StackedLearner, make_learner
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream

STREAM = Stream(7)
ALL = range(12)
LOCAL = LocalTraining(batch_size=5, learning_rate=1e-3, epochs=2)


class Steps:
    """A tiny VT5 that trains as `compute` says."""

    def __init__(
        self,
        base: Path,
        data: Path,
        *,
        dropout: bool = False,
        lora: LoRA | None = None,
        device: torch.device | str = "cpu",
        settings: Compute | None = None,
        keeps_size: bool = False,
        **compute: object,
    ) -> None:
        vt5, tokenizer = open_reference(base)
        settings = settings or Compute.model_validate(compute)
        self.model = TrainableModel(vt5.to(device), dropout=dropout, lora=lora, compute=settings)
        self.documents = Documents(
            self.model,
            tokenizer,
            Dataset(data, "train"),
            examples=ALL,
            max_input_tokens=64,
            on_page=lambda done, total: None,
            compute=settings,
            keeps_size=keeps_size,
        )

    @property
    def learner(self) -> Learner:
        return make_learner(self.model, self.documents, LOCAL)

    def gradient(self, examples: Sequence[int] = ALL) -> Tensor:
        return self.learner.gradient(self.model.start, examples, len(examples))

    def change(self, local: LocalTraining = LOCAL) -> Tensor:
        return self.learner.train(self.model.start, ALL, local, STREAM).change


def distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("size", [1, 5, 11])
def test_gradients_of_micro_batches_add_up_to_the_batch_s(base: Path, data: Path, size: int) -> None:
    assert distance(Steps(base, data, micro_batch_size=size).gradient(), Steps(base, data).gradient()) < 2e-6


def test_micro_batches_put_texts_of_one_length_together(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, lengths = Steps(base, data, micro_batch_size=3), list[int]()
    losses = steps.model.losses

    def noted(batch: Batch, groups: Sequence[int]) -> Tensor:
        lengths.append(batch.input_ids.shape[1])
        return losses(batch, groups)

    monkeypatch.setattr(steps.model, "losses", noted)
    steps.gradient()
    tokens = sorted((steps.documents._texts.length(example) for example in ALL), reverse=True)
    assert len(set(tokens)) > 1
    assert lengths == tokens[::3]


def test_a_micro_batch_as_large_as_the_batch_changes_nothing(base: Path, data: Path) -> None:
    assert torch.equal(Steps(base, data, micro_batch_size=12).change(), Steps(base, data).change())


def test_the_loss_of_micro_batches_is_the_batch_s(base: Path, data: Path) -> None:
    losses = [Steps(base, data, micro_batch_size=size).documents.backward(ALL).item() for size in (3, 12)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("dropout", [False, True])
def test_activations_that_are_computed_again_give_the_same_weights(
    base: Path, data: Path, dropout: bool
) -> None:
    expected = Steps(base, data, dropout=dropout).change()
    assert torch.equal(Steps(base, data, dropout=dropout, checkpoint_activations=True).change(), expected)


def test_checkpoints_take_less_memory(base: Path, data: Path) -> None:
    def saved(steps: Steps) -> int:
        sizes: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            loss = steps.documents.loss(ALL)
        del loss
        return sum(sizes.values())

    assert saved(Steps(base, data, checkpoint_activations=True)) < 0.7 * saved(Steps(base, data))


def test_bfloat16_trains_float32_weights_with_about_the_same_gradient(base: Path, data: Path) -> None:
    expected, steps = Steps(base, data).gradient(), Steps(base, data, precision="bfloat16")
    found = steps.gradient()
    assert found.dtype == torch.float32
    assert {weight.dtype for weight in steps.model.tensors.parameters.values()} == {torch.float32}
    # Bits of bfloat16, 8 of them, are worth 0.4 %.
    assert 1e-4 < distance(found, expected) < 0.05
    assert steps.change().dtype == torch.float32


def test_the_precision_auto_is_float32_on_a_cpu_and_wherever_a_round_may_be_replayed(
    base: Path, data: Path
) -> None:
    compute = Compute(precision="auto")
    assert torch.equal(Steps(base, data, settings=compute).gradient(), Steps(base, data).gradient())
    assert compute.repeatable() == Compute(precision="float32", deterministic=True)
    assert Compute(precision="bfloat16").repeatable().precision == "bfloat16"


def test_float16_features_change_a_step_by_rounding(base: Path, data: Path) -> None:
    found = Steps(base, data, features="float16").gradient()
    assert 0 < distance(found, Steps(base, data).gradient()) < 2e-3


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
    ],
)
@pytest.mark.parametrize(
    ("compute", "most"),
    [
        (Compute(), 1e-4),
        (Compute(micro_batch_size=5, checkpoint_activations=True), 1e-4),
        (Compute(tf32=True, precision="bfloat16"), 0.1),
    ],
    ids=["exact", "in parts", "bfloat16"],
)
@pytest.mark.parametrize("lora", [None, LoRA()], ids=["whole", "adapters"])
def test_a_step_is_the_same_on_each_device_but_for_rounding(
    base: Path, data: Path, device: str, compute: Compute, most: float, lora: LoRA | None
) -> None:
    step = LocalTraining(optimizer="sgd", learning_rate=1.0, batch_size=len(ALL), max_steps=1)
    found = Steps(base, data, lora=lora, device=device, settings=compute).change(step)
    assert found.device.type == "cpu"
    assert distance(found, Steps(base, data, lora=lora).change(step)) < most


def test_providers_that_train_at_once_in_bfloat16_learn_about_the_same(base: Path, data: Path) -> None:
    providers = {"one": [0, 1, 2], "two": [3, 4]}
    local = LocalTraining(optimizer="sgd", learning_rate=1.0, batch_size=2, max_steps=1, providers_at_once=2)
    expected, found = (
        Steps(base, data, lora=LoRA(), precision=precision) for precision in ("float32", "bfloat16")
    )
    pairs = zip(
        *(
            steps.learner.provider_changes(steps.model.start, providers, local, STREAM)
            for steps in (expected, found)
        ),
        strict=True,
    )
    for exact, rounded in pairs:
        assert rounded.dtype == torch.float32
        # Of two questions and few numbers: more than of a whole batch and model.
        assert 0 < distance(rounded, exact) < 0.15


def out_of_memory_above(rows: int, losses: Callable[..., Tensor], sizes: list[int]) -> Callable[..., Tensor]:
    """Losses that fail in the backward pass, after some gradients are there, for more than so many examples."""

    def limited(batch: object, groups: Sequence[int]) -> Tensor:
        result = losses(batch, groups)
        sizes.append(sum(groups))
        if sum(groups) > rows:
            torch.autograd.backward(result.sum(), retain_graph=True)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return result

    return limited


def test_where_memory_runs_out_micro_batches_are_halved_and_the_step_is_computed_again(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, steps = Steps(base, data).gradient(), Steps(base, data)
    sizes: list[int] = []
    monkeypatch.setattr(steps.model, "losses", out_of_memory_above(4, steps.model.losses, sizes))
    assert distance(steps.gradient(), expected) < 2e-6
    assert sizes == [12, 6, 3, 3, 3, 3]


def test_an_example_that_does_not_fit_alone_is_an_error(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(base, data)
    monkeypatch.setattr(steps.model, "losses", out_of_memory_above(0, steps.model.losses, []))
    with pytest.raises(torch.OutOfMemoryError):
        steps.gradient([3])


def test_where_memory_runs_out_half_as_many_providers_train_at_once(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    providers = {"a": [0, 1], "b": [2], "c": [3, 4], "d": []}
    steps = Steps(base, data, lora=LoRA())
    assert isinstance(steps.learner, StackedLearner)
    local = LOCAL.model_copy(update={"providers_at_once": 4, "adam_epsilon": 1e-3})

    def changes() -> list[Tensor]:
        return list(steps.learner.provider_changes(steps.model.start, providers, local, STREAM))

    expected = changes()
    monkeypatch.setattr(steps.model, "losses", out_of_memory_above(3, steps.model.losses, []))
    for found, before in zip(changes(), expected, strict=True):
        assert torch.allclose(found, before, atol=1e-6)


def test_every_step_is_reported_with_its_losses(base: Path, data: Path) -> None:
    reported: list[LocalStep] = []
    learner = Steps(base, data).learner
    learner.on_step = reported.append
    trained = learner.train(torch.clone(learner.tensors.read()), ALL, LOCAL, STREAM)
    assert [step.done for step in reported] == [1, 2, 3, 4, 5, 6]
    assert {step.total for step in reported} == {6} == {steps_of(12, LOCAL)}
    assert reported[-1].recent_loss == trained.loss
    assert steps_of(12, LOCAL.model_copy(update={"max_steps": 4})) == 4


@pytest.mark.parametrize(("keeps_size", "next_step"), [(False, [4]), (True, [3, 1])])
def test_memory_that_one_step_lacked_changes_the_next_where_nothing_is_private(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch, keeps_size: bool, next_step: list[int]
) -> None:
    steps, sizes = Steps(base, data, keeps_size=keeps_size), list[int]()
    monkeypatch.setattr(steps.model, "losses", out_of_memory_above(4, steps.model.losses, sizes))
    steps.gradient(range(6))
    steps.gradient(range(4))
    assert sizes == [6, 3, 3, *next_step]


def test_what_fits_is_found_with_public_numbers_before_the_first_step(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, shapes = Steps(base, data), list[tuple[int, int]]()
    losses = steps.model.losses

    def limited(batch: Batch, groups: Sequence[int]) -> Tensor:
        shapes.append((batch.input_ids.shape[0], batch.input_ids.shape[1]))
        if len(batch.input_ids) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return losses(batch, groups)

    monkeypatch.setattr(steps.model, "losses", limited)
    steps.documents.fit(12, 1000)
    # As long as any text can be, which those of the data aren't.
    assert shapes == [(12, 64), (6, 64), (3, 64)]
    assert all(weight.grad is None for weight in steps.model.tensors.parameters.values())
    steps.gradient()
    assert [size for size, _ in shapes[3:]] == [3, 3, 3, 3]
