"""A federation whose record i has the loss ½‖w − target_i‖²: its gradient is w − target_i, which a test works out."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from starter_kit.federation.rounds import Client
from starter_kit.learning.local_training import Learner
from starter_kit.learning.tensors import TrainableTensors


class Quadratics(Learner):
    """`targets` (n, d) are the records; `asked` keeps the indexes of each batch that a loss was asked for."""

    def __init__(self, targets: Tensor) -> None:
        self.weight = nn.Parameter(torch.zeros(targets.shape[1]))
        self.asked: list[list[int]] = []
        super().__init__(TrainableTensors({"w": self.weight}), self._mean_loss)
        self._targets = targets

    def _mean_loss(self, examples: Sequence[int]) -> Tensor:
        self.asked.append(list(examples))
        return (self.weight - self._targets[list(examples)]).square().sum(dim=1).mean() / 2


def clients_with(*counts: int) -> list[Client]:
    """Clients with so many records each, in the records' order, all of one provider."""
    starts = [sum(counts[:client]) for client in range(len(counts))]
    return [
        Client(client, {f"p{client}": list(range(start, start + count))})
        for client, (start, count) in enumerate(zip(starts, counts, strict=True))
    ]


def numbers(*values: float) -> Tensor:
    """Records of one coordinate."""
    return torch.tensor(values).unsqueeze(1)
