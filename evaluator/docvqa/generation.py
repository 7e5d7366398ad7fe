"""Greedy answers of a VT5, without anything that an answer doesn't need.

The same arithmetic as `VT5.generate`, up to rounding, arranged for speed:

- One projection gives queries, keys and values; only the encoder's output is stored.
- The decoder works on many more rows at once than the encoder: what costs in decoding is to read its weights, once
  a step whatever the number of rows; what costs in encoding is arithmetic, and rows beyond the caches slow it down.
- Cross-attention never builds keys and values of the page. With h the encoder's output, q·(K h) = (Kᵀ q)·h and
  Σ aᵢ (V hᵢ) = V (Σ aᵢ hᵢ): a step's one query is projected instead of 700 tokens (as in DeepSeek-V2, 2024,
  section 2.1.2). Answers have a few tokens, so that is a tenth of the work.
- Rows leave when their answer has ended, whenever a quarter of them has.

In bfloat16, the matrix products of the image tower and the encoder are computed in that precision; sums along the
layers and norms in float32, and so is the whole decoder: its time goes into reading, not arithmetic, and scores of
tokens that are rounded to eight bits tie.

Shapes: B rows, N tokens (text, then visual), d the model's width, H heads of K dimensions, T steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, rms_norm, scaled_dot_product_attention

from evaluator.docvqa.architecture import MAX_ANSWER_LENGTH
from evaluator.docvqa.devices import sent
from evaluator.docvqa.linear import linear
from evaluator.docvqa.tokenization import EncodedText
from evaluator.docvqa.vt5 import VT5, Batch, pad_labels, row_losses

# Ended rows are taken out when no more than this share of the rows continues.
STAYING = 0.75


@dataclass(frozen=True)
class Answer:
    """The tokens of an answer, its end among them if it has one, and its confidence; see `VT5.generate`.

    Attributes:
        loss: The mean cross-entropy of the gold answer's tokens, in nats; NaN where none was given.
    """

    ids: list[int]
    confidence: float
    loss: float = math.nan


@dataclass(frozen=True)
class Encoded:
    """What the encoder makes of some rows.

    Attributes:
        hidden: (B, N, d), the encoder's output.
        lengths: (B,) on the CPU, the number of tokens of each row; after them `hidden` means nothing.
    """

    hidden: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.hidden)

    @classmethod
    def join(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """Return all rows of `parts`, padded to the longest (B, N, d)."""
        if len(parts) == 1:
            return parts[0]
        longest = max(part.hidden.shape[1] for part in parts)
        first = parts[0].hidden
        hidden = first.new_zeros(sum(map(len, parts)), longest, first.shape[2])
        start = 0
        for part in parts:
            hidden[start : start + len(part), : part.hidden.shape[1]] = part.hidden
            start += len(part)
        return cls(hidden, torch.cat([part.lengths for part in parts]))

    def rows(self, some: range) -> "Encoded":
        """Return the rows of `some`, still padded to the same length (len(some), N, d)."""
        chosen = slice(some.start, some.stop)
        return Encoded(self.hidden[chosen], self.lengths[chosen])

    def padding(self) -> Tensor | None:
        """Return (B, N) bool, true after a row's last token; None where no row is padded."""
        longest = self.hidden.shape[1]
        if bool((self.lengths == longest).all()):
            return None
        device = self.hidden.device
        return torch.arange(longest, device=device) >= sent(self.lengths, device)[:, None]


class Generator:
    """A VT5 made ready to answer: its weights as they are now, those of the encoder in `dtype`."""

    def __init__(self, model: VT5, *, dtype: torch.dtype = torch.float32) -> None:
        config = model.config
        self.model = model
        self.dtype = dtype
        self.heads, self._head_width, self.eps = config.num_heads, config.d_kv, config.layer_norm_epsilon
        t5 = model.language_backbone
        self._embedding: Tensor = t5.shared.weight.detach().float()
        self._head: Tensor = t5.lm_head.weight.detach().float()
        self._is_gated = config.feed_forward_proj == "gated-gelu"
        self._encoder = [_Layer.of(block, dtype) for block in t5.encoder.block]
        self._encoder_norm = t5.encoder.final_layer_norm.weight.detach().float()
        self._decoder = [
            (_Layer.of(block, torch.float32), _CrossAttention.of(block.layer[1], self.heads))
            for block in t5.decoder.block
        ]
        self._decoder_norm = t5.decoder.final_layer_norm.weight.detach().float()
        self._encoder_attention = t5.encoder.block[0].layer[0].SelfAttention
        self._encoder_bias: Tensor = self._encoder_attention.compute_bias(1, 1).detach().to(dtype)
        steps = MAX_ANSWER_LENGTH - 1
        self._decoder_bias: Tensor = (
            t5.decoder.block[0].layer[0].SelfAttention.compute_bias(steps, steps).detach()[0].float()
        )
        self._start, self._end, self._pad = (
            config.decoder_start_token_id,
            config.eos_token_id,
            config.pad_token_id,
        )

    @property
    def device(self) -> torch.device:
        return self._embedding.device

    @torch.inference_mode()
    def page_features(self, pixels: Tensor) -> Tensor:
        """Return the image tower's output (P, V, dv) in float32 for pixels (P, 3, size, size)."""
        enabled = self.dtype is not torch.float32
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=enabled):
            return self.model.page_features(sent(pixels, self.device)).float()

    @torch.inference_mode()
    def encode(self, texts: Sequence[EncodedText], features: Tensor) -> Encoded:
        """Return the encoder's output for questions with the features (B, V, dv) of their pages."""
        batch = Batch.pad(texts, features, pad_token_id=self._pad).to(self.device)
        x, _ = self.model.encoder_input(batch)
        encoded = Encoded(x, torch.tensor([len(text) for text in texts]) + features.shape[1])
        padding = encoded.padding()
        bias = self._bias(x.shape[1])
        if padding is not None:
            bias = bias.masked_fill(padding[:, None, None], -torch.inf)
        shape = (*x.shape[:2], 3, self.heads, -1)
        for layer in self._encoder:
            qkv = linear(self._norm(x, layer.attention_norm), layer.qkv).view(shape)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            mixed = scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
            x += linear(mixed.transpose(1, 2).flatten(2), layer.output)
            x += linear(self._widened(self._norm(x, layer.feed_norm), layer.wi), layer.wo)
        return Encoded(self._normed(x, self._encoder_norm), encoded.lengths)

    @torch.inference_mode()
    def decode(self, encoded: Encoded) -> list[Answer]:
        """Return the greedy answer to each of the rows (B, N, d)."""
        size, steps = len(encoded), MAX_ANSWER_LENGTH - 1
        ids = torch.full((size, steps), self._pad, device=self.device)
        confidences = torch.ones(size, device=self.device)
        cache = encoded.hidden.new_empty(len(self._decoder), 2, size, self.heads, steps, self._head_width)
        state = _State(
            rows=torch.arange(size, device=self.device),
            token=torch.full((size,), self._start, device=self.device),
            going=torch.ones(size, dtype=torch.bool, device=self.device),
            hidden=encoded.hidden,
            padding=encoded.padding(),
            cache=cache,
        )
        for step in range(steps):
            best, probability = self._next(state, step)
            token = best.where(state.going, self._pad)
            ids[state.rows, step] = token
            state.token, state.going = token, state.going & (token != self._end)
            # The one time in a step that the host waits for a GPU.
            going = state.going.cpu().nonzero().squeeze(1)
            if not len(going) or step == steps - 1:
                break
            confidences[state.rows] *= probability.where(state.going, 1.0)
            if len(going) <= STAYING * len(state.going):
                state = state.only(sent(going, self.device))
        return [
            Answer(row[: row.index(self._end) + 1] if self._end in row else row, confidence)
            for row, confidence in zip(ids.tolist(), confidences.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def losses(self, encoded: Encoded, gold: Sequence[Sequence[int]]) -> Tensor:
        """Return the mean cross-entropy (B,) of each row's gold tokens, of the answers that `decode` needn't give."""
        padding = encoded.padding()
        labels = sent(pad_labels(gold), self.device)
        logits = self.model.decoder_logits(encoded.hidden, None if padding is None else ~padding, labels)
        return row_losses(logits, labels)

    def _next(self, state: "_State", step: int) -> tuple[Tensor, Tensor]:
        """Return the most probable next token (B,) of each row, and its probability."""
        x = self._embedding[state.token]
        rows = len(x)
        for number, (layer, cross) in enumerate(self._decoder):
            qkv = linear(self._normed(x, layer.attention_norm), layer.qkv).view(rows, 3, self.heads, -1)
            query, key, value = qkv.unbind(1)
            keys, values = state.cache[number, 0], state.cache[number, 1]
            keys[:, :, step], values[:, :, step] = key, value
            scores = query[:, :, None] @ keys[:, :, : step + 1].transpose(2, 3)
            weights = (scores + self._decoder_bias[:, step, None, : step + 1]).softmax(-1)
            mixed = weights @ values[:, :, : step + 1]
            x += linear(mixed.flatten(1), layer.output)

            query = linear(self._normed(x, cross.norm), cross.query)
            # (H, B, d), then (B, H, N).
            query = query.view(rows, self.heads, -1).transpose(0, 1) @ cross.key
            scores = query.transpose(0, 1) @ state.hidden.transpose(1, 2)
            if state.padding is not None:
                scores = scores.masked_fill_(state.padding[:, None], -torch.inf)
            # (B, H, d), then (B, H, K).
            mean = scores.softmax(-1) @ state.hidden
            mixed = (mean.transpose(0, 1) @ cross.value).transpose(0, 1)
            x += linear(mixed.flatten(1), cross.output)

            x += linear(self._widened(self._normed(x, layer.feed_norm), layer.wi), layer.wo)
        last = self._normed(x, self._decoder_norm)
        if self.model.config.tie_word_embeddings:
            last = last * self.model.config.d_model**-0.5
        logits = linear(last, self._head)
        highest, best = logits.max(-1)
        # Finite weights may still overflow on the way: such an answer is as good as its tokens, and nothing is sure.
        return best, (highest - logits.logsumexp(-1)).exp().nan_to_num(0.0)

    def _widened(self, x: Tensor, wi: Tensor) -> Tensor:
        if not self._is_gated:
            return linear(x, wi, relu=True)
        gate, value = linear(x, wi).chunk(2, dim=-1)
        return gelu(gate, approximate="tanh") * value

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return `x` (..., d) normed by `weight` (d,), in the precision of the encoder's products."""
        return self._normed(x, weight).to(self.dtype)

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        normed: Tensor = rms_norm(x, weight.shape, weight, self.eps)
        return normed

    def _bias(self, tokens: int) -> Tensor:
        """Return T5's bias (1, H, N, N) for relative positions, the same for all rows and layers."""
        if self._encoder_bias.shape[2] < tokens:
            self._encoder_bias = self._encoder_attention.compute_bias(tokens, tokens).to(self.dtype)
        return self._encoder_bias[:, :, :tokens, :tokens]


@dataclass(frozen=True)
class _Layer:
    """Self-attention and feed-forward of one block. `qkv` projects to queries, keys and values at once, and `wi` to the
    gate and what passes through it where there is a gate."""

    attention_norm: Tensor
    qkv: Tensor
    output: Tensor
    feed_norm: Tensor
    wi: Tensor
    wo: Tensor

    @classmethod
    def of(cls, block: Any, dtype: torch.dtype) -> "_Layer":
        attention, feed = block.layer[0], block.layer[-1]
        dense = feed.DenseReluDense
        names = ("wi_0", "wi_1") if hasattr(dense, "wi_0") else ("wi",)
        widening = [getattr(dense, name).weight.detach() for name in names]
        projections = (attention.SelfAttention.q, attention.SelfAttention.k, attention.SelfAttention.v)
        return cls(
            attention_norm=attention.layer_norm.weight.detach().float(),
            qkv=torch.cat([projection.weight.detach() for projection in projections]).to(dtype),
            output=attention.SelfAttention.o.weight.detach().to(dtype),
            feed_norm=feed.layer_norm.weight.detach().float(),
            wi=(torch.cat(widening) if len(widening) > 1 else widening[0]).to(dtype),
            wo=dense.wo.weight.detach().to(dtype),
        )


@dataclass(frozen=True)
class _CrossAttention:
    """`key` (H, K, d) and `value` (H, d, K) have a matrix for each head."""

    norm: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor

    @classmethod
    def of(cls, layer: Any, heads: int) -> "_CrossAttention":
        attention = layer.EncDecAttention
        key, value = (
            projection.weight.detach().float().unflatten(0, (heads, -1))
            for projection in (attention.k, attention.v)
        )
        return cls(
            norm=layer.layer_norm.weight.detach().float(),
            query=attention.q.weight.detach().float(),
            key=key,
            value=value.mT.contiguous(),
            output=attention.o.weight.detach().float(),
        )


@dataclass
class _State:
    """Rows on their way through the decoder.

    Attributes:
        rows: (B,), their positions among all rows.
        token: (B,), the token that each read last.
        going: (B,) bool, whether the answer continues.
        hidden: (B, N, d) the encoder's output, and `padding` (B, N) or None.
        cache: (layers, 2, B, H, T, K), keys and values of the answer so far.
    """

    rows: Tensor
    token: Tensor
    going: Tensor
    hidden: Tensor
    padding: Tensor | None
    cache: Tensor

    def only(self, rows: Tensor) -> "_State":
        """Return the state of the rows at the positions `rows` (R,)."""
        return _State(
            self.rows[rows],
            self.token[rows],
            self.going[rows],
            self.hidden[rows],
            None if self.padding is None else self.padding[rows],
            self.cache[:, :, rows],
        )
