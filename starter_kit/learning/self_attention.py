"""The encoder's self-attention that trains faster on a CPU, where PyTorch's fast kernel can't be used.

That kernel has no dropout, and no gradient for the bias of relative positions; in its place PyTorch computes every part
by itself, in memory that is new each time. Here a few heads at a time go through all parts while their scores are in
the processor's cache: the bias is where the products of queries and keys are added to, softmax and mask are applied in
place, and the backward pass reuses one piece of memory. The output differs from PyTorch's by rounding only, and under
dropout by the masks (`starter_kit.learning.dropout`).

Where PyTorch's kernel is used, as on a GPU, it adds one tensor (B or 1, H, N, N) to the scores: mask and bias. T5 makes
it in each layer, and the backward pass needs all of them; here the first layer makes it for all. At full size, where
texts are padded, that saves 265 MB an example.

Shapes: B examples, N tokens, H heads of K dimensions, R = B·H rows.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import scaled_dot_product_attention
from transformers.models.t5.modeling_t5 import T5Attention

from evaluator.docvqa.vt5 import VT5
from starter_kit.learning.dropout import PART, Masks, as_factors, is_exact_on_cpu
from starter_kit.learning.linear import MIN_WEIGHTS


class SelfAttention(T5Attention):  # type: ignore[misc]
    """T5's self-attention in its encoder, computed in parts where PyTorch's fast kernel can't be used.

    Either all layers of a pass are computed in parts or none is: what decides is the same in all.
    """

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None = None,
        key_value_states: Tensor | None = None,
        position_bias: Tensor | None = None,
        past_key_values: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the output (B, N, d), what the next layer adds to its scores, and no attention weights.

        Args:
            hidden_states: (B, N, d).
            mask: (B, 1, N or 1, N), true or 0 where a token is seen.
            position_bias: From the layer before: (1, H, N, N), or with the mask in it (B or 1, H, N, N).
        """
        bias_trains = (
            self.has_relative_attention_bias and self.relative_attention_bias.weight.requires_grad
            if position_bias is None
            else position_bias.requires_grad
        )
        dropout = self.dropout if self.training else 0.0
        if key_value_states is not None or past_key_values is not None:
            usual: tuple[Tensor, Tensor | None, Tensor | None] = super().forward(
                hidden_states, mask, key_value_states, position_bias, past_key_values, **kwargs
            )
            return usual
        length = hidden_states.shape[1]
        is_first = position_bias is None
        if position_bias is None and self.has_relative_attention_bias:
            position_bias = self.compute_bias(length, length, device=hidden_states.device).contiguous()
        if position_bias is None:
            position_bias = hidden_states.new_zeros(1, self.n_heads, length, length)
        query, key, value = (
            layer(hidden_states).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        if is_exact_on_cpu(hidden_states) and (dropout > 0 or bias_trains):
            mixed = _Attention.apply(query, key, value, position_bias, _added(mask), dropout)  # type: ignore[no-untyped-call]
        else:
            if is_first:
                position_bias = _masked(position_bias, mask, query.dtype)
            mixed = scaled_dot_product_attention(
                query, key, value, attn_mask=position_bias, dropout_p=dropout, scale=1.0
            )
        return self.o(mixed.transpose(1, 2).flatten(2)), position_bias, None


def use_fast_self_attention(model: VT5) -> None:
    """Replace the encoder's self-attention by `SelfAttention`, in place, unless it is small; names and weights stay the
    same."""
    for block in model.language_backbone.encoder.block:
        attention = block.layer[0].SelfAttention
        if attention.q.weight.numel() >= MIN_WEIGHTS:
            attention.__class__ = SelfAttention


def _masked(bias: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Return what the kernel adds to scores of `dtype` (B or 1, H, N, N): a bias (1, H, N, N) and the mask."""
    if not bias.requires_grad:
        # Otherwise each layer rounds it, so that their gradients add up unrounded.
        bias = bias.to(dtype)
    if mask is None:
        return bias
    return bias + mask if mask.dtype != torch.bool else bias.where(mask, torch.finfo(dtype).min)


def _added(mask: Tensor | None) -> Tensor | None:
    """Return what a mask adds to the scores (B, 1, 1 or N, N); None where every token is seen."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    if mask.all():
        return None
    lowest = torch.finfo(torch.float32).min
    return torch.zeros(mask.shape).masked_fill_(~mask, lowest)


class _Attention(torch.autograd.Function):
    """softmax(query · keyᵀ + bias + added), with dropout, times value: (B, H, N, K)."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor,
        added: Tensor | None,
        dropout: float,
    ) -> Tensor:
        masks = Masks(dropout) if dropout else None
        ctx.scale = masks.scale if masks else 1.0
        ctx.heads = query.shape[1]
        rows = [each.flatten(0, 1) for each in (query, key, value)]
        output = torch.empty_like(rows[0])
        weights: list[Tensor] = []
        kept: list[Tensor] = []
        for part in _parts(len(rows[0]), rows[0].shape[1]):
            q, k, v = (each[part] for each in rows)
            scores = _biases(bias, added, part).baddbmm_(q, k.mT)
            torch.softmax(scores, -1, out=scores)
            weights.append(scores)
            if masks:
                kept.append(masks.draw(scores.shape))
                scores = as_factors(kept[-1], torch.empty_like(scores)).mul_(scores)
            torch.bmm(scores, v, out=output[part])
        if masks:
            output.mul_(masks.scale)
        ctx.save_for_backward(*rows, *weights, *kept)
        return output.view(query.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *saved = ctx.saved_tensors
        parts = list(_parts(len(query), query.shape[1]))
        weights, kept = saved[: len(parts)], saved[len(parts) :]
        rows = gradient.flatten(0, 1).mul(ctx.scale)
        of_query, of_key, of_value = (torch.empty_like(each) for each in (query, key, value))
        for_bias = ctx.needs_input_grad[3]
        of_bias = query.new_zeros(1, ctx.heads, *weights[0].shape[1:]) if for_bias else None
        room, factors = (torch.empty_like(weights[0]) for _ in range(2))
        for number, part in enumerate(parts):
            weight, of_weight = weights[number], room[: len(weights[number])]
            torch.bmm(rows[part], value[part].mT, out=of_weight)
            if kept:
                factor = as_factors(kept[number], factors[: len(weight)])
                of_weight.mul_(factor)
                torch.bmm(factor.mul_(weight).mT, rows[part], out=of_value[part])
            else:
                torch.bmm(weight.mT, rows[part], out=of_value[part])
            of_scores = torch._softmax_backward_data(
                of_weight, weight, -1, torch.float32, grad_input=of_weight
            )
            torch.bmm(of_scores, key[part], out=of_query[part])
            torch.bmm(of_scores.mT, query[part], out=of_key[part])
            if of_bias is not None:
                for place, row in enumerate(range(part.start, part.stop)):
                    of_bias[0, row % ctx.heads] += of_scores[place]
        shape = gradient.shape
        return of_query.view(shape), of_key.view(shape), of_value.view(shape), of_bias, None, None


def _parts(rows: int, length: int) -> Iterator[slice]:
    """Yield which rows go together."""
    size = max(1, 2 * PART // length**2)
    for start in range(0, rows, size):
        yield slice(start, min(rows, start + size))


def _biases(bias: Tensor, added: Tensor | None, part: slice) -> Tensor:
    """Return a new tensor (r, N, N): what the scores of some rows begin with."""
    heads = bias.shape[1]
    chosen = torch.arange(part.start, part.stop)
    found = bias[0].index_select(0, chosen % heads)
    if added is not None:
        found += added[:, 0].index_select(0, chosen // heads)
    return found
