import pytest
import torch
from torch import nn

from evaluator.docvqa.linear import Linear, linear


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(7, 24), (1, 24), (3, 5, 24), (2, 1, 3, 24)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_the_quick_product_is_the_usual_one_up_to_rounding(
    shape: tuple[int, ...], biased: bool, relu: bool
) -> None:
    x, weight, bias = numbers(*shape), numbers(40, 24, seed=1), numbers(40, seed=2) if biased else None
    expected = nn.functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    with torch.no_grad():
        found = linear(x, weight, bias, relu=relu)
    torch.testing.assert_close(found.double(), expected.relu() if relu else expected, atol=1e-5, rtol=1e-5)


def test_parts_of_larger_tensors_are_multiplied_as_copies_of_them_would_be() -> None:
    x, weight = numbers(6, 48)[:, ::2], numbers(80, 24)[::2]
    with torch.no_grad():
        torch.testing.assert_close(
            linear(x, weight), linear(x.contiguous(), weight.contiguous()), atol=1e-5, rtol=1e-5
        )


def test_no_rows_have_a_product() -> None:
    with torch.no_grad():
        assert linear(numbers(0, 24), numbers(40, 24)).shape == (0, 40)


def test_gradients_are_those_of_the_usual_layer() -> None:
    torch.manual_seed(0)
    layer, x = Linear(24, 40), numbers(5, 24)
    layer(x).square().sum().backward()
    usual = nn.Linear(24, 40)
    usual.load_state_dict(layer.state_dict())
    usual(x).square().sum().backward()
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, usual.weight.grad)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_computed_in_their_own(dtype: torch.dtype) -> None:
    with torch.no_grad():
        assert linear(numbers(3, 24).to(dtype), numbers(40, 24).to(dtype)).dtype is dtype


def test_autocast_has_its_way() -> None:
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(numbers(3, 24), numbers(40, 24)).dtype is torch.bfloat16
