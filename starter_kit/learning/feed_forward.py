"""The feed-forward layers between attention, trained on a CPU with less memory traffic.

Between its two products, T5 takes the positive part and drops some of it, each into memory that is new. Here both
happen in place, where the first product was written, in parts that stay in the processor's cache. What is left of the
positive part also says where its gradient goes: no mask is kept. The output is that of T5's layer to the bit, and under
dropout for the same masks (`starter_kit.learning.dropout`).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from transformers.models.t5.modeling_t5 import T5DenseActDense

from evaluator.docvqa.vt5 import VT5
from starter_kit.learning.dropout import PART, Masks, as_factors, is_exact_on_cpu
from starter_kit.learning.linear import MIN_WEIGHTS


class FeedForward(T5DenseActDense):  # type: ignore[misc]
    """T5's feed-forward layer with a rectifier, which writes over what its first product gave."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the output (B, N, d) for (B, N, d), with B examples of N tokens."""
        widened = self.wi(hidden_states)
        if not is_exact_on_cpu(widened):
            usual: Tensor = self.wo(self.dropout(self.act(widened)))
            return usual
        if self.training and 0 < self.dropout.p < 1:
            widened = _KeptPositive.apply(widened, self.dropout.p)  # type: ignore[no-untyped-call]
        else:
            widened = torch.relu_(widened)
        output: Tensor = self.wo(widened)
        return output


def use_fast_feed_forward(model: VT5) -> None:
    """Replace the feed-forward layers of `model` by `FeedForward`, in place, unless they are small; names and weights
    stay the same."""
    for layer in model.modules():
        if type(layer) is T5DenseActDense and layer.get_parameter("wi.weight").numel() >= MIN_WEIGHTS:
            layer.__class__ = FeedForward


class _KeptPositive(torch.autograd.Function):
    """The positive part of x, of which some numbers are set to zero and the others scaled, in place of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        masks, room = Masks(probability), torch.empty(min(PART, x.numel()))
        for part in torch.split(x.view(-1), PART):
            kept = as_factors(masks.draw(part.shape), room[: len(part)])
            part.clamp_min_(0).mul_(kept.mul_(masks.scale))
        ctx.scale = masks.scale
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (output,) = ctx.saved_tensors
        passed: Tensor = torch.ops.aten.threshold_backward(gradient, output, 0.0)
        return passed.mul_(ctx.scale), None
