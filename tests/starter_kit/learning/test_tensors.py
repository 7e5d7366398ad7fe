import pytest
import torch
from torch import nn

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.learning.tensors import TrainableTensors


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2, bias=False))


def test_reading_and_writing_are_inverse() -> None:
    tensors = TrainableTensors(dict(model().named_parameters()))
    vector = torch.arange(tensors.size, dtype=torch.float32)
    tensors.write(vector)
    assert torch.equal(tensors.read(), vector)


def test_a_read_vector_does_not_change_with_the_model() -> None:
    tensors = TrainableTensors(dict(model().named_parameters()))
    before = tensors.read()
    copy = before.clone()
    tensors.write(torch.zeros(tensors.size))
    assert torch.equal(before, copy)


def test_patterns_choose_the_tensors_and_freeze_the_others() -> None:
    network = model()
    tensors = TrainableTensors(dict(network.named_parameters()), ["1.*", "2.weight"])
    assert list(tensors.parameters) == ["1.bias", "1.weight", "2.weight"]
    assert tensors.size == 4 + 4 + 8
    assert not dict(network.named_parameters())["0.weight"].requires_grad


def test_a_pattern_that_matches_nothing_is_named() -> None:
    with pytest.raises(ProblemError) as caught:
        TrainableTensors(dict(model().named_parameters()), ["*.weight", "decoder.*"])
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert "decoder.*" in caught.value.problem.where


def test_a_tied_tensor_may_be_named_only_once() -> None:
    tied = nn.Parameter(torch.zeros(3, 3))
    with pytest.raises(ValueError, match="tied"):
        TrainableTensors({"shared.weight": tied, "lm_head.weight": tied})


def test_half_precision_is_rejected() -> None:
    with pytest.raises(ValueError, match="float32"):
        TrainableTensors(dict(model().half().named_parameters()))
