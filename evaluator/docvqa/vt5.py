"""VT5, the benchmark's model: T5 reads the question, the page's words with their boxes, and the page image.

Source: Tito et al., Privacy-aware document visual question answering, 2024, on top of Biten et al. (T5 with
boxes) and Li et al. (DiT). Modules carry the names of the published checkpoints, so `named_parameters` is what a
checkpoint holds.

Shapes below: B questions, L text tokens, V visual tokens, P pages, d the model's width, dv the image tower's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5ForConditionalGeneration

from evaluator.docvqa.architecture import MAX_ANSWER_LENGTH, NOT_OF_T5, VT5Config, read_config, write_config
from evaluator.docvqa.devices import pinned, sent
from evaluator.docvqa.dit import ImageTower
from evaluator.docvqa.linear import Linear
from evaluator.docvqa.tokenization import EncodedText
from evaluator.docvqa.weights import fill, read_original, read_safetensors, write_safetensors

MAX_COORDINATE = 1000
# The label of a position that counts for no loss.
IGNORED = -100
WEIGHTS = "model.safetensors"
ORIGINAL_WEIGHTS = "pytorch_model.bin"


@dataclass(frozen=True)
class Batch:
    """Questions ready for the model, padded to the longest.

    Attributes:
        input_ids: (B, L) int64.
        boxes: (B, L, 4) float32, as `Tokenizer.encode` gives them.
        attention_mask: (B, L) bool, false at padding.
        features: (B, V, dv), the image tower's output for each question's page.
        labels: (B, T) int64, padded with -100; None where answers are to be generated.
        is_padded: False where no text is padded, so that attention needs no mask.
    """

    input_ids: Tensor
    boxes: Tensor
    attention_mask: Tensor
    features: Tensor
    labels: Tensor | None = None
    is_padded: bool = True

    @classmethod
    def pad(
        cls,
        texts: Sequence[EncodedText],
        features: Tensor,
        answers: Sequence[Sequence[int]] | None = None,
        *,
        pad_token_id: int = 0,
    ) -> Self:
        """Return a batch of encoded texts, their pages' features (B, V, dv) and, if given, their answers' tokens."""
        length = max(len(text.ids) for text in texts)
        # numpy reads lists five times as fast as torch does.
        ids = np.full((len(texts), length), pad_token_id, np.int64)
        places = np.zeros((len(texts), length, 4), np.float32)
        for row, text in enumerate(texts):
            ids[row, : len(text.ids)] = text.ids
            places[row, : len(text.ids)] = text.boxes
        input_ids, boxes = torch.from_numpy(ids), torch.from_numpy(places)
        lengths = torch.tensor([len(text.ids) for text in texts])
        is_padded = any(len(text.ids) < length for text in texts)
        attention_mask = torch.arange(length) < lengths[:, None]
        labels = None if answers is None else pad_labels(answers)
        return cls(input_ids, boxes, attention_mask, features, labels, is_padded)

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device; the host goes on while it is copied."""
        return self._each(sent, device)

    def pinned(self, device: torch.device) -> Self:
        """Return the batch in memory that `device` can read by itself: see `evaluator.docvqa.devices`."""
        return self._each(pinned, device)

    def _each(self, move: Callable[[Tensor, torch.device], Tensor], device: torch.device) -> Self:
        moved: dict[str, Any] = {
            name: move(value, device) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


def pad_labels(answers: Sequence[Sequence[int]]) -> Tensor:
    """Return the tokens of answers as labels (B, T) int64, padded with -100."""
    labels = torch.full((len(answers), max(map(len, answers))), IGNORED)
    for row, answer in enumerate(answers):
        labels[row, : len(answer)] = torch.tensor(answer)
    return labels


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy (B,) of each row's tokens, for logits (B, T, vocabulary) and labels (B, T)."""
    of_tokens = nn.functional.cross_entropy(logits.float().mT, labels, ignore_index=IGNORED, reduction="none")
    return of_tokens.sum(dim=1) / (labels != IGNORED).sum(dim=1)


class VT5(nn.Module):
    """The model. Open it with one of the `from_...` methods; the constructor leaves weights at random."""

    def __init__(self, config: VT5Config) -> None:
        super().__init__()
        self.config = config
        # First, so that its weight has this name, and none that checkpoints may give to copies of the embedding.
        self.answer_head = None if config.tie_word_embeddings else _answer_head(config)
        self.language_backbone = T5ForConditionalGeneration(_t5_config(config))
        if self.answer_head is not None:
            self.language_backbone.lm_head = self.answer_head
        self.spatial_embedding = SpatialEmbedding(config)
        self.visual_embedding = VisualEmbedding(config)
        self.visual_embedding.image_model.requires_grad_(config.train_visual_tower)

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Return the model of a folder, its weights in `model.safetensors` or, as published, `pytorch_model.bin`.

        Raises `ProblemError` where the configuration can't be read or the weights are not this model's.
        """
        weights, original = folder / WEIGHTS, folder / ORIGINAL_WEIGHTS
        if original.exists() and not weights.exists():
            return cls._with_weights(read_config(folder), read_original(original), where=original.name)
        return cls.from_checkpoint(folder, weights)

    @classmethod
    def from_checkpoint(cls, reference: Path, checkpoint: Path) -> Self:
        """Return the architecture of the folder `reference` with the weights of a safetensors file.

        This is how the workers open a submission. Raises `ProblemError` as `from_folder` does.
        """
        return cls._with_weights(read_config(reference), read_safetensors(checkpoint), where=checkpoint.name)

    @classmethod
    def _with_weights(cls, config: VT5Config, tensors: dict[str, Tensor], *, where: str) -> Self:
        with torch.device("meta"):
            model = cls(config)
        fill(model, tensors, where=where)
        t5 = model.language_backbone
        t5.set_input_embeddings(t5.shared)
        if config.tie_word_embeddings:
            t5.lm_head.weight = t5.shared.weight
        return model.eval()

    def save(self, folder: Path) -> None:
        """Write `config.json`, `visual_config.json` and `model.safetensors` (float32, tied weights once)."""
        write_config(self.config, folder)
        write_safetensors(self, folder / WEIGHTS)

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that training changes, by their name in a checkpoint; tied ones once."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def page_features(self, pixel_values: Tensor) -> Tensor:
        """Return the image tower's output (P, V, dv) for pixels (P, 3, H, W).

        It depends on the page alone: compute it once and use it for all of a page's questions. No gradient
        passes unless the tower is trained.
        """
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.config.train_visual_tower):
            features: Tensor = self.visual_embedding.image_model(pixel_values)
            return features

    def embed(self, input_ids: Tensor, boxes: Tensor, features: Tensor) -> Tensor:
        """Return what T5's encoder reads, (B, L+V, d): the text with its boxes, then the page's visual tokens."""
        text = self.language_backbone.shared(input_ids) + self.spatial_embedding(boxes)
        return torch.cat([text, self.visual_embedding(features)], dim=1)

    def encoder_input(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what the encoder reads of a batch (B, L+V, d) and its mask (B, L+V), false at padding.

        Padding comes last; under `published_batching` it comes between text and page.
        """
        embeddings = self.embed(batch.input_ids, batch.boxes, batch.features)
        seen = batch.attention_mask.new_ones(batch.features.shape[:2])
        mask = torch.cat([batch.attention_mask, seen], dim=1)
        stays = self.config.published_batching or not batch.is_padded
        return (embeddings, mask) if stays else _move_padding_last(embeddings, mask)

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the encoder's output (B, L+V, d) and its mask (B, L+V)."""
        embeddings, mask = self.encoder_input(batch)
        output = self.language_backbone.encoder(
            inputs_embeds=embeddings, attention_mask=_for_attention(mask if batch.is_padded else None)
        )
        return output.last_hidden_state, mask

    def logits(self, batch: Batch) -> Tensor:
        """Return the scores (B, T, vocabulary) of every next token of the labels, given the tokens before it."""
        if batch.labels is None:
            raise ValueError("the batch has no labels")
        encoded, mask = self.encode(batch)
        return self.decoder_logits(encoded, mask if batch.is_padded else None, batch.labels)

    def decoder_logits(self, encoded: Tensor, mask: Tensor | None, labels: Tensor) -> Tensor:
        """Return the same scores (B, T, vocabulary) from the encoder's output (B, L+V, d) and its mask (B, L+V), which
        is None where nothing is padded."""
        output = self.language_backbone(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=_for_attention(mask),
            decoder_input_ids=self.language_backbone.prepare_decoder_input_ids_from_labels(labels),
            use_cache=False,
        )
        logits: Tensor = output.logits
        return logits

    @torch.no_grad()
    def generate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return greedy answers: token ids (B, T), T < 20, padded after their end, and confidences (B,).

        The confidence is the product of the probabilities of an answer's tokens but for its last, which is its
        end. A row leaves the batch at its end. With `published_batching` it stays to the end of the longest
        answer and its confidence shrinks with it, as it does in the published code.
        """
        config = self.config
        encoded, mask = self.encode(batch)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        size, device = len(encoded), encoded.device
        ids = torch.full((size, MAX_ANSWER_LENGTH - 1), config.pad_token_id, device=device)
        confidences = torch.ones(size, device=device)
        rows = torch.arange(size, device=device)
        token = torch.full((size,), config.decoder_start_token_id, device=device)
        ended = torch.zeros(size, dtype=torch.bool, device=device)
        for step in range(ids.shape[1]):
            output = self.language_backbone(
                encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
                attention_mask=mask,
                decoder_input_ids=token[:, None],
                past_key_values=cache,
                use_cache=True,
            )
            probability, best = output.logits[:, -1].softmax(-1).max(-1)
            token = best.where(~ended, config.pad_token_id)
            ids[rows, step] = token
            ended = ended | (token == config.eos_token_id)
            leaving = ended.all().expand_as(ended) if config.published_batching else ended
            if step == ids.shape[1] - 1:
                leaving = torch.ones_like(ended)
            confidences[rows] *= probability.where(~leaving, 1.0)
            if leaving.all():
                return ids[:, : step + 1], confidences.nan_to_num(0.0)
            if leaving.any():
                stay = (~leaving).nonzero().squeeze(1)
                encoded, mask, rows, token, ended = (x[stay] for x in (encoded, mask, rows, token, ended))
                cache.batch_select_indices(stay)
        return ids, confidences.nan_to_num(0.0)


class SpatialEmbedding(nn.Module):
    """Boxes (B, L, 4), each [x0, y0, x1, y1], to vectors (B, L, d)."""

    def __init__(self, config: VT5Config) -> None:
        super().__init__()
        self.box_scale = config.box_scale
        self.x_position_embeddings = nn.Embedding(config.max_2d_position_embeddings, config.d_model)
        self.y_position_embeddings = nn.Embedding(config.max_2d_position_embeddings, config.d_model)
        self.LayerNorm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.spatial_emb_matcher = Matcher(config.d_model, config.d_model)

    def forward(self, boxes: Tensor) -> Tensor:
        """Return the vectors (B, L, d) of boxes (B, L, 4)."""
        # The prompt's box, 0 to 1000 already, stays what it is under either scale.
        x0, y0, x1, y1 = (boxes * self.box_scale).long().clamp(0, MAX_COORDINATE).unbind(-1)
        summed = (
            self.x_position_embeddings(x0)
            + self.y_position_embeddings(y0)
            + self.x_position_embeddings(x1)
            + self.y_position_embeddings(y1)
        )
        matched: Tensor = self.spatial_emb_matcher(self.dropout(self.LayerNorm(summed)))
        return matched


class VisualEmbedding(nn.Module):
    """The image tower, and the layer that brings its features (B, V, dv) to T5's width (B, V, d)."""

    def __init__(self, config: VT5Config) -> None:
        super().__init__()
        self.image_model = ImageTower(config.visual)
        self.visual_emb_matcher = Matcher(config.visual.hidden_size, config.d_model)

    def forward(self, features: Tensor) -> Tensor:
        """Return vectors (B, V, d) for the image tower's features (B, V, dv)."""
        matched: Tensor = self.visual_emb_matcher(features)
        return matched


class Matcher(nn.Module):
    """One linear layer, under the name that checkpoints give it."""

    def __init__(self, width: int, target: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Linear(width, target)])

    def forward(self, vectors: Tensor) -> Tensor:
        """Return vectors (..., target) for vectors (..., width)."""
        matched: Tensor = self.layers[0](vectors)
        return matched


def _for_attention(mask: Tensor | None) -> Tensor | None:
    """Return a mask (B, N) as (B, 1, 1, N), of which T5 doesn't ask, with the host waiting, whether all are seen."""
    return None if mask is None else mask[:, None, None]


def _move_padding_last(embeddings: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Let each row's visual tokens follow its own text, so that T5's relative positions don't depend on padding.

    A row then has the same output in every batch that it may be part of.
    """
    order = mask.argsort(dim=1, descending=True, stable=True)
    return embeddings.take_along_dim(order[:, :, None], dim=1), mask.gather(1, order)


def _answer_head(config: VT5Config) -> nn.Linear:
    head = nn.Linear(config.d_model, config.vocab_size, bias=False)
    nn.init.normal_(head.weight, std=config.initializer_factor * config.d_model**-0.5)
    return head


def _t5_config(config: VT5Config) -> T5Config:
    return T5Config(**config.model_dump(exclude=NOT_OF_T5), attn_implementation="sdpa")
