"""How a training step is computed: what changes its time and its memory, and its result by rounding only."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field

from evaluator.docvqa.devices import allow_tf32, precision_of


class Compute(BaseModel):
    """How a training step is computed. On a CPU, the defaults give the same numbers on every run of one machine.

    Attributes:
        precision: The precision of matrix products. With bfloat16, weights, gradients, the optimizer and
        everything that is clipped, noised or sent stay in float32. auto is bfloat16 on a GPU that has it, and
        float32 elsewhere and in replayable runs.
        tf32: Whether a GPU computes products and convolutions of float32 in TensorFloat-32, with 11 significant
        bits. Image features and merged weights never are.
        deterministic: Whether a GPU computes the same numbers on every run, where PyTorch has such kernels,
        which takes longer. Replayable runs always do.
        micro_batch_size: How many examples pass through the model at once; the gradients add up to the
        batch's gradient. null for the whole batch. If memory runs out, the step is computed again in halves, and later
        steps of a run without privacy use the size that fits.
        checkpoint_activations: Whether activations are recomputed in the backward pass instead of being kept.
        features: The format in which image features of pages are stored. float16 takes half the space and
        rounds each number to 11 significant bits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    tf32: bool = False
    deterministic: bool = False
    micro_batch_size: int | None = Field(default=None, ge=1)
    checkpoint_activations: bool = False
    features: Literal["float32", "float16"] = "float32"

    def autocast(self, device: torch.device) -> AbstractContextManager[object]:
        """Return the context of a forward pass on `device`."""
        if self.precision == "float32" or (
            self.precision == "auto" and precision_of(device) is torch.float32
        ):
            return nullcontext()
        return torch.autocast(device.type, torch.bfloat16)

    def repeatable(self) -> Self:
        """Return the same, with what lets another machine of this kind compute the same numbers."""
        precision = "float32" if self.precision == "auto" else self.precision
        return self.model_copy(update={"precision": precision, "deterministic": True})

    def set_up_process(self) -> None:
        """Have this process's GPU compute so from now on."""
        allow_tf32(self.tf32)
        if self.deterministic and torch.cuda.is_available():
            # What cuBLAS reads before its first product.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)


# In float32, without anything that saves memory.
EXACT = Compute()
