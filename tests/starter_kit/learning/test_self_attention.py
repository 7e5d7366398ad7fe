from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from transformers.models.t5.modeling_t5 import T5Attention

from starter_kit.compression.lora import LoRA
from starter_kit.learning import self_attention
from starter_kit.learning.dropout import PART, Masks
from starter_kit.learning.self_attention import SelfAttention, use_fast_self_attention
from starter_kit.learning.trainable_model import TrainableModel
from tests.starter_kit.learning.middle import middle_batch, middle_model

WIDTH, HEADS, LENGTH = 256, 4, 40
PADDED = torch.arange(LENGTH)[None, None, None] < torch.tensor([LENGTH, 25])[:, None, None, None]


class Layers:
    """The self-attention of both layers of an encoder, one after the other."""

    def __init__(self, *, dropout: bool = False) -> None:
        model = middle_model().train(dropout)
        self.model = model
        self.layers: list[T5Attention] = [
            block.layer[0].SelfAttention for block in model.language_backbone.encoder.block
        ]
        self.parameters = [weight for layer in self.layers for weight in layer.parameters()]
        self.entering = torch.randn(
            2, LENGTH, WIDTH, generator=torch.Generator().manual_seed(2)
        ).requires_grad_()

    def output(self, mask: Tensor | None) -> Tensor:
        first, bias, _ = self.layers[0](self.entering, mask=mask)
        second: Tensor = self.layers[1](first, mask=mask, position_bias=bias)[0]
        return second

    def results(self, mask: Tensor | None) -> list[Tensor]:
        """The output, and the gradients of a sum of it."""
        output = self.output(mask)
        shares = torch.randn(output.shape, generator=torch.Generator().manual_seed(4))
        return [output, *torch.autograd.grad((output * shares).sum(), [self.entering, *self.parameters])]


def assert_close(found: Sequence[Tensor], expected: Sequence[Tensor], most: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one - other).norm().item() < most * other.norm().item()


# Of eight rows, three at a time: a part then has heads of two examples.
@pytest.mark.parametrize("part", [PART, 3 * LENGTH**2 // 2 + 1])
@pytest.mark.parametrize("mask", [None, PADDED, PADDED.expand(2, 1, LENGTH, LENGTH)])
def test_output_and_gradients_are_those_of_t5(
    monkeypatch: pytest.MonkeyPatch, part: int, mask: Tensor | None
) -> None:
    monkeypatch.setattr(self_attention, "PART", part)
    layers = Layers()
    expected = layers.results(mask)
    use_fast_self_attention(layers.model)
    assert all(type(layer) is SelfAttention for layer in layers.layers)
    assert_close(layers.results(mask), expected, 2e-6)


def test_a_mask_of_numbers_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = Layers()
    numbers = torch.zeros(PADDED.shape).masked_fill(~PADDED, -1e9)
    expected = layers.results(PADDED)
    use_fast_self_attention(layers.model)
    assert_close(layers.results(numbers), expected, 2e-6)


def test_under_dropout_weights_are_masked_and_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the formula in float64, with the masks that were drawn."""
    monkeypatch.setattr(self_attention, "PART", 3 * LENGTH**2 // 2 + 1)
    masks: list[Tensor] = []
    draw = Masks.draw

    def noted(self: Masks, shape: Sequence[int]) -> Tensor:
        masks.append(draw(self, shape))
        return masks[-1]

    monkeypatch.setattr(Masks, "draw", noted)
    tensors = [
        torch.randn(2, HEADS, LENGTH, 64, generator=torch.Generator().manual_seed(n)) for n in range(3)
    ]
    given = [each.requires_grad_() for each in (*tensors, torch.randn(1, HEADS, LENGTH, LENGTH))]
    found = self_attention._Attention.apply(*given, None, 0.25)
    shares = torch.randn(found.shape)
    gradients = torch.autograd.grad((found * shares).sum(), given)

    kept = torch.cat(masks).view(2, HEADS, LENGTH, LENGTH)
    assert 0.7 < kept.float().mean() < 0.8
    query, key, value, bias = exact = [each.detach().double().requires_grad_() for each in given]
    weights = (query @ key.mT + bias).softmax(-1) * kept * Masks(0.25).scale
    expected = weights @ value
    assert_close(
        [found, *gradients],
        [expected, *torch.autograd.grad((expected * shares).sum(), exact)],
        1e-5,
    )


def test_without_gradients_t5_computes_itself() -> None:
    layers = Layers()
    with torch.no_grad():
        expected = layers.output(PADDED)
        use_fast_self_attention(layers.model)
        assert torch.equal(layers.output(PADDED), expected)


def test_where_the_bias_is_frozen_and_nothing_is_dropped_t5_computes_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(self_attention._Attention, "forward", fail)
    model = TrainableModel(middle_model(), lora=LoRA())
    model.backward(model.losses(middle_batch(model._model), [2])[0])
    model = TrainableModel(middle_model())
    batch = middle_batch(model._model)
    with pytest.raises(AssertionError):
        model.losses(batch, [2])


@pytest.mark.parametrize("mask", [None, PADDED])
def test_what_pytorch_s_kernel_adds_to_the_scores_is_made_once_for_all_layers(mask: Tensor | None) -> None:
    layers = Layers()
    use_fast_self_attention(layers.model)
    with torch.no_grad():
        first, added, _ = layers.layers[0](layers.entering, mask=mask)
        assert layers.layers[1](first, mask=mask, position_bias=added)[1] is added


def test_small_layers_stay_as_they_are() -> None:
    model = middle_model()
    for block in model.language_backbone.encoder.block:
        block.layer[0].SelfAttention.q = torch.nn.Linear(64, 64, bias=False)
    use_fast_self_attention(model)
    assert {type(block.layer[0].SelfAttention) for block in model.language_backbone.encoder.block} == {
        T5Attention
    }


@pytest.mark.parametrize("dropout", [False, True])
def test_the_model_s_gradient_is_that_of_t5_but_for_masks(dropout: bool) -> None:
    def gradient(*, fast: bool) -> Tensor:
        model = TrainableModel(middle_model(), dropout=dropout, fast_layers=fast)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(1)
            model.backward(model.losses(middle_batch(model._model), [2])[0])
        return model.tensors.take_gradient()

    expected, found = gradient(fast=False), gradient(fast=True)
    distance = float((found - expected).norm() / expected.norm())
    assert (0.05 < distance < 1.5) if dropout else (distance < 2e-5)
