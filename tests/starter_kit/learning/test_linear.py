import copy

import pytest
import torch
from torch import Tensor, nn

from evaluator.docvqa.linear import HAS_ONEDNN, Linear
from starter_kit.learning.linear import TrainingLinear, use_fast_linear

large = pytest.mark.parametrize(
    "made", [nn.Linear(256, 300), nn.Linear(256, 300, bias=False), Linear(256, 300)], ids=str
)


def gradients(layer: nn.Linear, x: Tensor, weighting: Tensor) -> dict[str, Tensor]:
    x = x.clone().requires_grad_()
    layer.zero_grad()
    output = layer(x)
    (output * weighting).sum().backward()
    assert x.grad is not None
    return {"output": output.detach(), "x": x.grad} | {
        name: weight.grad for name, weight in layer.named_parameters() if weight.grad is not None
    }


@large
def test_outputs_and_gradients_are_those_of_pytorch(made: nn.Linear) -> None:
    quick = nn.Sequential(copy.deepcopy(made))
    use_fast_linear(quick)
    assert type(quick[0]) is TrainingLinear
    x, weighting = torch.randn(3, 5, 256), torch.randn(3, 5, 300)
    found, expected = gradients(quick[0], x, weighting), gradients(made, x, weighting)
    assert found.keys() == expected.keys()
    for name in expected:
        assert torch.allclose(found[name], expected[name], atol=1e-4), name


@pytest.mark.skipif(not HAS_ONEDNN, reason="PyTorch was built without oneDNN")
def test_it_is_onednn_that_multiplies() -> None:
    layer = nn.Sequential(nn.Linear(256, 256))
    use_fast_linear(layer)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        layer(torch.randn(4, 256)).sum().backward()
    called = {event.key for event in profile.key_averages()}
    assert "mkldnn::_linear_pointwise" in called
    assert "aten::addmm" not in called


def test_a_gradient_that_is_one_number_in_every_place_is_followed() -> None:
    made = nn.Linear(256, 256)
    quick = copy.deepcopy(made)
    use_fast_linear(quick)
    x = torch.randn(7, 256)
    quick(x).sum().backward()
    made(x).sum().backward()
    assert quick.weight.grad is not None
    assert made.weight.grad is not None
    assert torch.allclose(quick.weight.grad, made.weight.grad, atol=1e-4)


def test_a_frozen_layer_passes_the_gradient_on_and_keeps_none() -> None:
    layer = nn.Linear(256, 256)
    layer.requires_grad_(False)
    use_fast_linear(layer)
    found = gradients(layer, torch.randn(2, 256), torch.ones(2, 256))
    assert found.keys() == {"output", "x"}
    assert torch.allclose(found["x"], layer.weight.sum(0).expand(2, 256), atol=1e-4)


def test_float64_stays_exact() -> None:
    layer = nn.Linear(256, 256).double()
    use_fast_linear(layer)
    x = torch.randn(4, 256, dtype=torch.float64)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_large_layers_become_quick_and_keep_their_names_weights_and_hooks() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.Linear(8, 8))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model[0].register_forward_hook(lambda layer, inputs, output: output + 1000)
    use_fast_linear(model)
    assert type(model[1]) is nn.Linear
    assert model[0](torch.zeros(1, 256)).min() > 900
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
