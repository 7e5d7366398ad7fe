"""A VT5 between the tiny and the real one: its layers are large enough for the faster ones."""

import torch

from evaluator.docvqa.vt5 import VT5, Batch
from tests.tiny_reference import random_vt5, tiny_config

VOCABULARY = 300


def middle_model() -> VT5:
    """Return a model with random weights, always the same."""
    changes = {
        "d_model": 256,
        "d_kv": 64,
        "num_heads": 4,
        "d_ff": 512,
        "num_layers": 2,
        "num_decoder_layers": 1,
    }
    return random_vt5(tiny_config(VOCABULARY).model_copy(update=changes), seed=0)


def middle_batch(model: VT5) -> Batch:
    """Return two examples, one of which is padded."""
    draw = torch.Generator().manual_seed(1)
    visual = model.config.visual
    mask = torch.ones(2, 96, dtype=torch.bool)
    mask[1, 60:] = False
    return Batch(
        input_ids=torch.randint(3, VOCABULARY, (2, 96), generator=draw),
        boxes=torch.rand(2, 96, 4, generator=draw),
        attention_mask=mask,
        features=torch.randn(2, visual.tokens, visual.hidden_size, generator=draw),
        labels=torch.tensor([[5, 6, 1], [7, 1, -100]]),
    )
