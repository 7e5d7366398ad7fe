"""The image tower of VT5: DiT, a BEiT encoder over 16 × 16 pixel patches.

Written out here because released VT5 checkpoints name its weights as transformers 4 did, and later versions of
that library name and nest them differently. Only the parts that DiT uses are here. Nothing in it is random, in
training neither: the tower is a fixed function of the page unless its weights are trained.

Sources: Li et al., DiT: Self-supervised pre-training for document image transformer, 2022; Bao et al., BEiT,
2021, for pre-norm blocks whose branches are scaled by learned vectors.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from evaluator.docvqa.architecture import VisualConfig
from evaluator.docvqa.linear import Linear

INITIAL_STD = 0.02


class ImageTower(nn.Module):
    """Pixels (P, 3, size, size) in [-1, 1] to features (P, V, hidden); V counts the patches and a first token."""

    def __init__(self, config: VisualConfig) -> None:
        super().__init__()
        self.embeddings = PatchEmbeddings(config)
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))}
        )
        # VT5 reads the tokens, never their pooled mean, but its checkpoints hold the pooler's weights.
        self.pooler = nn.ModuleDict({"layernorm": nn.LayerNorm(config.hidden_size, config.layer_norm_eps)})
        self.apply(_initialize)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Return the features (P, V, hidden) of pixels (P, 3, size, size)."""
        hidden: Tensor = self.embeddings(pixel_values)
        for block in self.encoder["layer"].children():
            hidden = block(hidden)
        return hidden


class PatchEmbeddings(nn.Module):
    """Pixels to patches with their positions, after one token for the whole page."""

    def __init__(self, config: VisualConfig) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.empty(1, 1, config.hidden_size))
        self.position_embeddings = nn.Parameter(torch.empty(1, config.tokens, config.hidden_size))
        self.patch_embeddings = nn.ModuleDict(
            {"projection": nn.Conv2d(3, config.hidden_size, config.patch_size, stride=config.patch_size)}
        )

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Return the tokens (P, V, hidden) of pixels (P, 3, size, size)."""
        patches = self.patch_embeddings["projection"](pixel_values).flatten(2).transpose(1, 2)
        first = self.cls_token.expand(len(patches), -1, -1)
        return torch.cat([first, patches], dim=1) + self.position_embeddings


class Block(nn.Module):
    """One pre-norm transformer block; `lambda_1` and `lambda_2` scale what its two branches add."""

    def __init__(self, config: VisualConfig) -> None:
        super().__init__()
        width, heads = config.hidden_size, config.num_attention_heads
        self.heads = heads
        self.lambda_1 = nn.Parameter(torch.full((width,), config.layer_scale_init_value))
        self.lambda_2 = nn.Parameter(torch.full((width,), config.layer_scale_init_value))
        self.attention = nn.ModuleDict(
            {
                "attention": nn.ModuleDict(
                    {
                        "query": Linear(width, width),
                        "key": Linear(width, width, bias=False),
                        "value": Linear(width, width),
                    }
                ),
                "output": nn.ModuleDict({"dense": Linear(width, width)}),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": Linear(width, config.intermediate_size)})
        self.output = nn.ModuleDict({"dense": Linear(config.intermediate_size, width)})
        self.layernorm_before = nn.LayerNorm(width, config.layer_norm_eps)
        self.layernorm_after = nn.LayerNorm(width, config.layer_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the block's output (P, V, hidden) for its input of the same shape."""
        hidden = hidden + self.lambda_1 * self._attend(self.layernorm_before(hidden))
        widened = gelu(self.intermediate["dense"](self.layernorm_after(hidden)))
        hidden = hidden + self.lambda_2 * self.output["dense"](widened)
        return hidden

    def _attend(self, hidden: Tensor) -> Tensor:
        projections = self.attention.get_submodule("attention")
        query, key, value = (
            projection(hidden).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in projections.children()
        )
        mixed = scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        attended: Tensor = self.attention.get_submodule("output.dense")(mixed)
        return attended


def _initialize(module: nn.Module) -> None:
    match module:
        case Linear() | nn.Conv2d():
            nn.init.trunc_normal_(module.weight, std=INITIAL_STD)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        case PatchEmbeddings():
            nn.init.trunc_normal_(module.cls_token, std=INITIAL_STD)
            nn.init.trunc_normal_(module.position_embeddings, std=INITIAL_STD)
