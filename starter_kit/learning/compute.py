"""How a training step is computed: what changes its time and its memory, and its result by rounding only."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field


class Compute(BaseModel):
    """How a training step is computed. The defaults give the same numbers on every run of one machine, in float32.

    Attributes:
        precision: The precision of matrix products. With bfloat16, weights, gradients, the optimizer and
        everything that is clipped, noised or sent stay in float32.
        tf32: Whether a GPU multiplies float32 matrices in TensorFloat-32, with 11 significant bits.
        micro_batch_size: How many examples pass through the model at once; the gradients add up to the
        batch's gradient. null for the whole batch. If memory runs out, the step is computed again in halves, and later
        steps of a run without privacy use the size that fits.
        checkpoint_activations: Whether activations are recomputed in the backward pass instead of being kept.
        features: The format in which image features of pages are stored. float16 takes half the space and
        rounds each number to 11 significant bits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    precision: Literal["float32", "bfloat16"] = "float32"
    tf32: bool = False
    micro_batch_size: int | None = Field(default=None, ge=1)
    checkpoint_activations: bool = False
    features: Literal["float32", "float16"] = "float32"

    def autocast(self, device: torch.device) -> AbstractContextManager[object]:
        """Return the context of a forward pass on `device`."""
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(device.type, torch.bfloat16)

    def set_matrix_precision(self) -> None:
        """Set how this process's GPU multiplies float32 matrices from now on."""
        torch.backends.cuda.matmul.allow_tf32 = self.tf32


# In float32, without anything that saves memory.
EXACT = Compute()
