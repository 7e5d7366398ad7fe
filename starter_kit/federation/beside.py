"""What a method sends beside its updates: only methods that write no training record do."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

# Where the server keeps, in its state, what goes down beside the model.
BESIDE = "beside"


@dataclass(frozen=True)
class Beside:
    """What travels behind the model and behind each update, such as a control variate or the sum of a statistic.

    Down goes what the method keeps in the server's state under `BESIDE`, and zeros before there is any. No training
    record has a place for it.

    Attributes:
        vectors: How many vectors as long as the model.
        numbers: How many single numbers, after the vectors.
    """

    vectors: int = 0
    numbers: int = 0

    def size(self, model: int) -> int:
        """Return how many numbers go beside a model of this size."""
        return self.vectors * model + self.numbers

    def layout(self, model: Sequence[torch.Size]) -> list[torch.Size]:
        """Return the shapes of what is in a message, one after another, for those of the model's tensors."""
        return [*(1 + self.vectors) * list(model), *([torch.Size([self.numbers])] if self.numbers else [])]

    def model_size(self, whole: int) -> int:
        """Return the size of the model in a message of so many numbers."""
        return (whole - self.numbers) // (1 + self.vectors)


NOTHING = Beside()
