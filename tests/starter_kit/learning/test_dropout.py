import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from starter_kit.learning import dropout
from starter_kit.learning.compute import Compute
from starter_kit.learning.dropout import BITS, MIN_NUMBERS, Masks, TrainingDropout, stay
from starter_kit.learning.trainable_model import TrainableModel
from tests.starter_kit.learning.middle import middle_batch, middle_model


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        yield


def drawn(probability: float, count: int, *, seed: int = 3) -> Tensor:
    torch.default_generator.manual_seed(seed)
    return Masks(probability).draw([count])


@pytest.mark.parametrize("dropped", [0, 1, 6554, BITS - 1])
def test_as_many_values_of_the_bits_are_dropped_as_the_probability_says(dropped: int) -> None:
    every = np.arange(-BITS // 2, BITS // 2).astype(np.int16)
    assert int((~stay(every, dropped)).sum()) == dropped


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.003])
def test_the_probability_is_the_nearest_of_sixteen_bits(probability: float) -> None:
    scale = Masks(probability).scale
    assert abs((1 - 1 / scale) - probability) <= 0.5 / BITS + 1e-12
    count = 1 << 22
    deviation = math.sqrt(count * probability * (1 - probability))
    # A fixed seed; with another, more than 7 standard deviations have a chance below 1e-11.
    assert abs(int((~drawn(probability, count)).sum()) - count * (1 - 1 / scale)) < 7 * deviation


def test_masks_follow_from_torchs_seed_and_differ_from_draw_to_draw() -> None:
    assert torch.equal(drawn(0.5, 1001), drawn(0.5, 1001))
    assert not torch.equal(drawn(0.5, 1001), drawn(0.5, 1001, seed=4))
    masks = Masks(0.5)
    assert not torch.equal(masks.draw([1001]), masks.draw([1001]))
    assert not torch.equal(Masks(0.5).draw([1001]), Masks(0.5).draw([1001]))


def test_neighbors_are_dropped_independently() -> None:
    count, mask = 1 << 20, drawn(0.5, 1 << 20)
    for distance in (1, 2, 3, 4, 8):
        together = int((mask[distance:] == mask[:-distance]).sum())
        assert abs(together - (count - distance) / 2) < 7 * math.sqrt(count) / 2


@pytest.mark.parametrize("part", [dropout.PART, 1000])
def test_what_stays_is_scaled_and_so_is_its_gradient(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(dropout, "PART", part)
    layer = TrainingDropout(0.1)
    x = torch.randn(3, MIN_NUMBERS, requires_grad=True)
    result = layer(x)
    scale = Masks(0.1).scale
    kept = result != 0
    assert 0.85 < kept.float().mean() < 0.95
    assert torch.allclose(result, x * kept * scale, rtol=1e-6)
    gradient = torch.randn(3, MIN_NUMBERS).t().contiguous().t()
    result.backward(gradient)
    assert x.grad is not None
    assert torch.allclose(x.grad, gradient * kept * scale, rtol=1e-6)


def test_torchs_own_way_is_taken_where_nothing_is_gained() -> None:
    layer, x = TrainingDropout(0.1), torch.randn(MIN_NUMBERS)
    assert torch.equal(layer.eval()(x), x)
    layer.train()
    for given in (x[:100], x.double()):
        torch.default_generator.manual_seed(5)
        expected = nn.functional.dropout(given, 0.1)
        torch.default_generator.manual_seed(5)
        assert torch.equal(layer(given), expected)
    assert not TrainingDropout(1.0)(x).any()


def gradient(compute: Compute) -> Tensor:
    model = TrainableModel(middle_model(), dropout=True, compute=compute)
    torch.default_generator.manual_seed(8)
    (loss,) = model.losses(middle_batch(model._model), [2])
    model.backward(loss)
    return model.tensors.take_gradient()


def test_activations_that_are_computed_again_have_the_masks_that_they_had() -> None:
    expected = gradient(Compute())
    assert expected.norm() > 1e-3
    assert torch.equal(gradient(Compute(checkpoint_activations=True)), expected)
