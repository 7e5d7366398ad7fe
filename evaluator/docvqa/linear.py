"""Linear layers at the speed that this machine's CPU has.

PyTorch multiplies float32 matrices on an x86 CPU with MKL. oneDNN, which PyTorch carries too, took half the time on
the AMD processor on which both were measured. The two differ by rounding only. oneDNN's operator has no gradient, so
training goes the usual way.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as usual

HAS_ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, relu: bool = False) -> Tensor:
    """Return x (..., n) · weight (m, n)ᵀ + bias (m,), and of that the positive part where `relu`; shape (..., m)."""
    exact = x.dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
    if HAS_ONEDNN and x.device.type == "cpu" and exact and not torch.is_grad_enabled():
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, weight, bias, "relu" if relu else "none", [], ""
        )
        return product
    product = usual(x, weight, bias)
    return product.relu_() if relu else product


class Linear(nn.Linear):
    """`torch.nn.Linear`, faster on a CPU where no gradient is needed."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the product (..., m) for x (..., n), with the bias added."""
        return linear(x, self.weight, self.bias)
