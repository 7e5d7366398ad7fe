from typing import Any

import pytest
import torch
from torch import Tensor

from starter_kit.learning import dropout, feed_forward
from starter_kit.learning.dropout import TrainingDropout
from starter_kit.learning.feed_forward import FeedForward, use_fast_feed_forward
from starter_kit.learning.trainable_model import TrainableModel
from tests.starter_kit.learning.middle import middle_model

WIDTH, LENGTH = 256, 40


def results(layer: Any) -> list[Tensor]:
    """The output of a layer, and the gradients of a sum of it, from a fixed state of torch's generator."""
    draw = torch.Generator().manual_seed(2)
    entering = torch.randn(2, LENGTH, WIDTH, generator=draw).requires_grad_()
    shares = torch.randn(2, LENGTH, WIDTH, generator=draw)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        output = layer(entering)
    return [output, *torch.autograd.grad((output * shares).sum(), [entering, *layer.parameters()])]


def layer(*, training: bool) -> Any:
    found = middle_model().train(training).language_backbone.encoder.block[0].layer[1].DenseReluDense
    found.dropout.__class__ = TrainingDropout
    return found


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("part", [dropout.PART, 3000])
def test_output_and_gradients_are_those_of_t5_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, training: bool, part: int
) -> None:
    monkeypatch.setattr(dropout, "PART", part)
    monkeypatch.setattr(feed_forward, "PART", part)
    usual = layer(training=training)
    expected = results(usual)
    usual.__class__ = FeedForward
    for found, before in zip(results(usual), expected, strict=True):
        assert torch.equal(found, before)


def test_no_more_is_kept_than_what_the_second_product_needs() -> None:
    fast = layer(training=True)
    fast.__class__ = FeedForward
    saved: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    entering = torch.randn(2, LENGTH, WIDTH)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = fast(entering)
    # What enters the layer, for the gradient of the first weight; what enters its second product; and that weight.
    widened = 2 * LENGTH * fast.wi.out_features
    assert output.requires_grad
    assert sum(saved.values()) == 4 * (entering.numel() + widened + fast.wo.weight.numel())


def test_without_gradients_and_in_other_precisions_the_layer_is_t5s() -> None:
    usual = layer(training=False)
    entering = torch.randn(1, 3, WIDTH)
    with torch.no_grad():
        expected = usual(entering)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = usual(entering)
    usual.__class__ = FeedForward
    with torch.no_grad():
        assert torch.equal(usual(entering), expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(usual(entering), rounded)


def test_a_model_that_trains_has_them_where_its_layers_are_large() -> None:
    model = middle_model()
    TrainableModel(model)
    kinds = [
        type(part) for part in model.modules() if type(part).__name__ in ("FeedForward", "T5DenseActDense")
    ]
    assert kinds == [FeedForward] * 3


def test_small_layers_stay_as_they_are() -> None:
    model = middle_model()
    feed = model.language_backbone.encoder.block[0].layer[1].DenseReluDense
    feed.wi = torch.nn.Linear(8, 8)
    use_fast_feed_forward(model)
    assert type(feed) is not FeedForward
