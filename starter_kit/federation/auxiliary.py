"""Auxiliary vectors, which some methods send with models and updates; no training record has a place for them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# Where the server stores, in its state, the auxiliary vectors that it sends with the model.
AUXILIARY = "beside"


@dataclass(frozen=True)
class AuxiliaryVectors:
    """The layout of the auxiliary vectors that follow a model or an update in a message, such as a control variate.

    The server sends what the method stores in the server's state under `AUXILIARY`, and zeros before there is any.

    Attributes:
        vectors: How many vectors as long as the model.
        numbers: How many single numbers, after the vectors.
    """

    vectors: int = 0
    numbers: int = 0

    def size(self, model: int) -> int:
        """Return the number of auxiliary numbers for a model of this size."""
        return self.vectors * model + self.numbers

    def appended(self, weights: Tensor, stored: Tensor | None = None) -> Tensor:
        """Return a model (d,) with its auxiliary vectors: those that the server stored, or zeros."""
        size = self.size(len(weights))
        if not size:
            return weights
        return torch.cat([weights, weights.new_zeros(size) if stored is None else stored])

    def layout(self, model: Sequence[torch.Size]) -> list[torch.Size]:
        """Return the shapes of what is in a message, one after another, for those of the model's tensors."""
        return [*(1 + self.vectors) * list(model), *([torch.Size([self.numbers])] if self.numbers else [])]

    def model_size(self, whole: int) -> int:
        """Return the size of the model in a message of so many numbers."""
        return (whole - self.numbers) // (1 + self.vectors)


NO_AUXILIARY = AuxiliaryVectors()
