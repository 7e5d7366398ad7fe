"""torch's optimizers without its compiler, which they import for nothing.

The first optimizer of a process imports `torch._dynamo`, only to keep the compiler away from the optimizer's functions:
more than a second, and 70 MB, in each process that trains. Nothing is compiled here, so these optimizers are made of
the functions themselves, and compute the same to the bit.
"""

from inspect import unwrap

import torch
from torch.optim import Optimizer


class UncompiledOptimizer(Optimizer):
    """An optimizer that loads no compiler; its subclass brings the step."""

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)


class AdamW(UncompiledOptimizer, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))


class SGD(UncompiledOptimizer, torch.optim.SGD):
    """`torch.optim.SGD`."""

    step = torch.no_grad()(unwrap(torch.optim.SGD.step))
