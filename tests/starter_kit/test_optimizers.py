import sys

import pytest
import torch
from torch.nn import Parameter
from torch.optim import Optimizer

from starter_kit.learning.shampoo import Shampoo
from starter_kit.optimizers import SGD, AdamW


def stepped(optimizer: Optimizer, parameter: Parameter) -> torch.Tensor:
    for _ in range(3):
        optimizer.zero_grad()
        parameter.square().sum().backward()
        optimizer.step()
    return parameter.detach().clone()


def parameter() -> Parameter:
    return Parameter(torch.linspace(-1, 1, 12).reshape(3, 4))


def test_they_step_as_torch_s_own_do_to_the_bit() -> None:
    mine, theirs = parameter(), parameter()
    own: Optimizer = AdamW([mine], lr=0.1, weight_decay=0.2, fused=True)
    reference: Optimizer = torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.2, fused=True)
    assert torch.equal(stepped(own, mine), stepped(reference, theirs))
    mine, theirs = parameter(), parameter()
    own = SGD([mine], lr=0.1, momentum=0.9, fused=True)
    reference = torch.optim.SGD([theirs], lr=0.1, momentum=0.9, fused=True)
    assert torch.equal(stepped(own, mine), stepped(reference, theirs))


def test_they_load_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    # To import it fails, and nothing that an earlier test left behind stands in for it.
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        wrapped = getattr(Optimizer, name).__wrapped__
        monkeypatch.delattr(wrapped, "__dynamo_disable", raising=False)
    for make in (AdamW, SGD, lambda params, lr: Shampoo(params, lr, element_clip=1.0)):
        one = parameter()
        optimizer = make([one], lr=0.1)
        stepped(optimizer, one)
        optimizer.load_state_dict(optimizer.state_dict())
