from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from evaluator.errors import ErrorCode, ProblemError
from evaluator.parametrizations.known import PARAMETRIZATIONS
from starter_kit.compression.lora import Adapters, LoRA
from starter_kit.randomness import Stream

STREAM = Stream(7)
SETTINGS = LoRA(rank=2, alpha=6, targets=["0", "2"])


every = pytest.mark.parametrize("name", PARAMETRIZATIONS)


def made(settings: LoRA = SETTINGS) -> tuple[nn.Sequential, Adapters]:
    """Layers, two of them with adapters, of which none is zero."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3, bias=False)).eval()
    adapters = Adapters(model, settings)
    for parameter in adapters.parameters.values():
        nn.init.normal_(parameter)
    return model, adapters


def by_hand(model: nn.Sequential, adapters: Adapters, values: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """The layers with the products of adapters added to their weights; `values` are those of the trained parts."""
    first, last = model[0], model[2]
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    kind, moved = adapters.settings.parametrization, []
    for name, layer in (("0", first), ("2", last)):
        names = {part.letter: name + part.suffix for part in kind.parts}
        down, up = kind.factors(
            {letter: values.get(full, adapters.parameters[full]) for letter, full in names.items()}
        )
        moved.append(layer.weight + adapters.settings.scale * up @ down)
    return nn.functional.linear(x, moved[0], first.bias).tanh() @ moved[1].T


def test_new_adapters_leave_the_model_as_it_is_and_are_the_same_for_every_party() -> None:
    model = nn.Sequential(nn.Linear(6, 5))
    x = torch.randn(4, 6)
    before = model(x)
    one = Adapters(model, LoRA(rank=3, targets=["0"]))
    assert torch.equal(model(x), before)
    other = Adapters(nn.Sequential(nn.Linear(6, 5)), LoRA(rank=3, targets=["0"]))
    assert torch.equal(one.parameters["0.lora_A.weight"], other.parameters["0.lora_A.weight"])
    assert one.parameters["0.lora_A.weight"].shape == (3, 6)


def test_adapters_add_their_products_and_only_they_get_gradients_where_the_rest_is_frozen() -> None:
    model, adapters = made()
    model.requires_grad_(False)
    x = torch.randn(4, 7, 6)
    output = model(x)
    assert torch.allclose(output, by_hand(model, adapters, {}, x), atol=1e-5)
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in adapters.parameters.values())
    assert all(parameter.grad is None for parameter in model.parameters())


@every
def test_merged_weights_answer_as_the_adapters_do_and_are_taken_back(name: str) -> None:
    model, adapters = made(SETTINGS.model_copy(update={"type": name}))
    x, before = torch.randn(4, 6), [parameter.clone() for parameter in model.parameters()]
    expected = model(x)
    with adapters.merged():
        assert torch.allclose(model(x), expected, atol=1e-5)
        assert not torch.equal(next(model.parameters()), before[0])
    assert all(torch.equal(now, then) for now, then in zip(model.parameters(), before, strict=True))
    assert torch.equal(model(x), expected)


@every
@pytest.mark.parametrize("sizes", [[2, 2, 2], [3, 1, 2]], ids=["equal parts", "ragged"])
def test_each_part_of_a_batch_passes_through_its_own_adapters(sizes: list[int], name: str) -> None:
    model, adapters = made(SETTINGS.model_copy(update={"type": name}))
    stacked = {
        name: torch.randn(3, *parameter.shape, requires_grad=True)
        for name, parameter in adapters.trained.items()
    }
    x = torch.randn(6, 7, 6)
    with adapters.using(stacked, sizes):
        output = model(x)
    expected = [
        by_hand(model, adapters, {name: tensor[part] for name, tensor in stacked.items()}, rows)
        for part, rows in enumerate(x.split(sizes))
    ]
    assert torch.allclose(output, torch.cat(expected), atol=1e-4)
    output[: sizes[0]].sum().backward()
    for tensor in stacked.values():
        assert tensor.grad is not None
        assert tensor.grad[0].abs().sum() > 0
        assert not tensor.grad[1:].any()
    assert torch.allclose(model(x), by_hand(model, adapters, {}, x), atol=1e-5)


def test_gradients_are_those_of_the_weights_with_the_products_added() -> None:
    model, adapters = made()
    model.double()
    stacked = {
        name: torch.randn(3, *parameter.shape, dtype=torch.float64, requires_grad=True)
        for name, parameter in adapters.parameters.items()
    }
    x, weighting = torch.randn(6, 7, 6).double().requires_grad_(), torch.randn(6, 7, 3).double()
    inputs = [x, *stacked.values(), *model.parameters()]
    with adapters.using(stacked, [2, 2, 2]):
        found = torch.autograd.grad((model(x) * weighting).sum(), inputs)
    parts = [
        by_hand(model, adapters, {name: tensor[part] for name, tensor in stacked.items()}, rows)
        for part, rows in enumerate(x.split(2))
    ]
    expected = torch.autograd.grad((torch.cat(parts) * weighting).sum(), inputs)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10)


def test_dropout_is_on_what_enters_an_adapter_in_training_only() -> None:
    model, _ = made(LoRA(rank=2, dropout=0.5, targets=["0"]))
    x = torch.ones(1, 6)
    assert torch.equal(model(x), model(x))
    model.train()
    torch.manual_seed(0)
    assert len({tuple(model(x).flatten().tolist()) for _ in range(20)}) > 1


def test_a_layer_whose_weight_is_tied_to_another_gets_no_adapter() -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(9, 4), "head": nn.Linear(4, 9, bias=False)})
    model["inner"] = nn.Linear(4, 4)
    model["head"].weight = model["embedding"].weight
    adapters = Adapters(model, LoRA(rank=2, targets=["*"]))
    assert list(adapters.parameters) == ["inner.lora_A.weight", "inner.lora_B.weight"]


def test_a_weight_without_singular_vectors_gets_no_core_adapter() -> None:
    layer = nn.Linear(4, 4)
    nn.init.eye_(layer.weight)
    with pytest.raises(ProblemError) as caught:
        Adapters(nn.Sequential(layer), LoRA(type="core", rank=2, targets=["0"]))
    assert (caught.value.problem.code, caught.value.problem.where) == (
        ErrorCode.CONFIGURATION,
        "lora.type core, layer 0",
    )


def test_a_pattern_that_matches_no_linear_layer_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        Adapters(nn.Sequential(nn.Linear(2, 2)), LoRA(targets=["0", "*.q"]))
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert "*.q" in caught.value.problem.where
