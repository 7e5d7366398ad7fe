"""Linear layers that train faster on a CPU.

`evaluator.docvqa.linear` multiplies with oneDNN where no gradient is needed. Here the same product has a gradient,
which consists of two more products: one for the input, by oneDNN as well, and one for the weight, by PyTorch's own
library, which needs no copy of the transposed gradient and takes as long. Each is computed only where it is needed,
unlike for frozen weights under adapters. The output differs from that of PyTorch's own layer by rounding only.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from evaluator.docvqa.linear import HAS_ONEDNN, Linear

# For smaller layers, a faster product saves less than this way of calling it costs.
MIN_WEIGHTS = 1 << 16


class TrainingLinear(Linear):
    """`torch.nn.Linear`, faster in float32 on a CPU, with a gradient or without."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x (..., n) times the weight (m, n), plus the bias (m,): (..., m)."""
        fast = (
            HAS_ONEDNN
            and x.device.type == "cpu"
            and x.dtype == self.weight.dtype == torch.float32
            and not torch.is_autocast_enabled("cpu")
        )
        if fast and torch.is_grad_enabled():
            product: Tensor = _Product.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
            return product
        return super().forward(x)


def use_fast_linear(model: nn.Module) -> None:
    """Replace the large linear layers of `model` by `TrainingLinear`, in place; names and weights stay the same."""
    for layer in model.modules():
        plain = type(layer) in (nn.Linear, Linear)
        if plain and isinstance(layer, nn.Linear) and layer.weight.numel() >= MIN_WEIGHTS:
            layer.__class__ = TrainingLinear


class _Product(torch.autograd.Function):
    """x (..., n) · weight (m, n)ᵀ + bias (m,)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        for_x, for_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if for_weight else None, weight if for_x else None)
        product = _product(x, weight, bias)
        # Not a view in the eyes of autograd, so that what follows may write over it.
        own: Tensor = torch.ops.aten._unsafe_view(product, product.shape)
        return own

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.shape[-1])
        return (
            _product(gradient, weight.t()) if for_x else None,
            rows.t() @ x.reshape(-1, x.shape[-1]) if for_weight else None,
            rows.sum(0) if for_bias else None,
        )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product
