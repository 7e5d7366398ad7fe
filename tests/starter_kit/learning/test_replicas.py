"""A batch on two replicas, both on the CPU, against the same batch on one model."""

from pathlib import Path

import pytest
import torch

from starter_kit.compression.lora import LoRA
from starter_kit.learning.compute import Compute
from starter_kit.learning.replicas import Replicas, shares_of
from tests.starter_kit.learning.test_compute import LOCAL, Steps, distance, out_of_memory_above

CPU = torch.device("cpu")


class Shared(Steps):
    """A tiny VT5 whose steps are shared by `count` devices."""

    def __init__(
        self,
        base: Path,
        data: Path,
        count: int = 2,
        *,
        lora: LoRA | None = None,
        dropout: bool = False,
        compute: Compute | None = None,
    ) -> None:
        super().__init__(base, data, dropout=dropout, lora=lora, settings=compute, devices=[CPU] * count)

    @property
    def replicas(self) -> Replicas:
        assert self.documents._replicas
        return self.documents._replicas


@pytest.mark.parametrize("lora", [None, LoRA()], ids=["whole", "adapters"])
@pytest.mark.parametrize("compute", [Compute(), Compute(micro_batch_size=5, checkpoint_activations=True)])
@pytest.mark.parametrize("count", [2, 3])
def test_the_gradient_is_that_of_one_device(
    base: Path, data: Path, lora: LoRA | None, compute: Compute, count: int
) -> None:
    expected = Shared(base, data, 1, lora=lora).gradient()
    found = Shared(base, data, count, lora=lora, compute=compute).gradient()
    assert distance(found, expected) < 3e-6


def test_the_loss_counts_each_device_by_its_tokens(base: Path, data: Path) -> None:
    one, two = Shared(base, data, 1), Shared(base, data, 2)
    expected = one.documents.backward([0, 5, 8]).item()
    assert two.documents.backward([0, 5, 8]).item() == pytest.approx(expected, rel=1e-6)
    shares = shares_of(two.documents._read([0, 5, 8]), [3], 2)
    assert [share.sizes for share in shares] == [[2], [1]]
    tokens = [int((share.batch.labels != -100).sum()) for share in shares if share.batch.labels is not None]
    assert tokens[0] != 2 * tokens[1]
    assert [share.parts.item() for share in shares] == pytest.approx(
        [count / sum(tokens) for count in tokens]
    )


def test_groups_are_split_where_the_devices_meet(base: Path, data: Path) -> None:
    two = Shared(base, data, 2)
    groups = [[0, 5, 8], [3], [11, 3]]
    expected = two.documents.losses(groups).tolist()
    batch = two.documents._read([example for group in groups for example in group])
    assert two.replicas.losses(batch, [3, 1, 2]).tolist() == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_fewer_examples_than_devices_leaves_some_without_work(base: Path, data: Path) -> None:
    for examples in ([3], [3, 4]):
        expected = Shared(base, data, 1).gradient(examples)
        found = Shared(base, data, 3)
        assert distance(found.gradient(examples), expected) < 3e-6
        # Nothing is left that would count in the next step.
        assert all(
            p.grad is None for model in found.replicas._models for p in model.tensors.parameters.values()
        )


def test_all_steps_of_a_training_are_those_of_one_device(base: Path, data: Path) -> None:
    local = LOCAL.model_copy(update={"adam_epsilon": 1e-3})
    assert distance(Shared(base, data).change(local), Shared(base, data, 1).change(local)) < 1e-4


def test_where_memory_runs_out_on_one_device_the_step_is_computed_again_in_halves(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, found = Shared(base, data, 1).gradient(), Shared(base, data)
    sizes: list[int] = []
    _, second = found.replicas._models
    monkeypatch.setattr(second, "losses", out_of_memory_above(2, second.losses, sizes))
    assert distance(found.gradient(), expected) < 3e-6
    # Of twelve, six and three examples at once, the second device has half.
    assert sizes == [6, 3, 1, 1, 1, 1]


def test_dropout_draws_the_same_masks_in_each_run(base: Path, data: Path) -> None:
    first, second = (Shared(base, data, dropout=True).change() for _ in range(2))
    assert torch.equal(first, second)
    assert distance(first, Shared(base, data).change()) > 1e-3


def test_replicas_share_nothing_with_the_model_but_its_start(base: Path, data: Path) -> None:
    found = Shared(base, data, lora=LoRA())
    model, replica = found.replicas._models
    assert found.replicas.devices == [CPU, CPU]
    assert replica.start is model.start
    assert not {p.data_ptr() for p in model.weights} & {p.data_ptr() for p in replica.weights}
    assert replica.parameters == model.parameters
