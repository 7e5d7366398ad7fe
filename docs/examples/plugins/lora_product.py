"""Federated averaging of adapters by their product (FlexLoRA, Bai et al. 2024, arXiv:2402.11505).

An adapter adds (alpha/r)·B·A to a layer, with A (r, in) and B (out, r). The mean of the clients' products is not the
product of their mean factors: for two clients,

    (B₁A₁ + B₂A₂)/2 − ((B₁+B₂)/2)·((A₁+A₂)/2) = (B₁ − B₂)·(A₁ − A₂)/4.

fedavg averages the factors, and so moves the model by something else than the mean of what the clients did, the more
the further their factors are apart. Here the server takes the mean P of the products, and sends factors of rank r with
the smallest distance from it: with P = U·S·Vᵀ, of which the r largest singular values stay,

    A ← Vᵀ/√3      B ← √3·U·S

Nothing is lost where the rank of P is at most r, as with one client a round; otherwise the singular values beyond r
are. A has rows of the length that they begin with; where a singular value is zero, B has a zero column, as new adapters
do. Other trained tensors are averaged as in fedavg. Clients send factors as well: messages are those of `lora`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from pydantic import model_validator
from torch import Tensor

from starter_kit.federation.rounds import Aggregate, Client, Message, Method
from starter_kit.learning.local_training import State
from starter_kit.methods import fedavg
from starter_kit.methods.fedavg import FedAvg
from starter_kit.settings.plan import Plan

DOWN, UP = ".lora_A.weight", ".lora_B.weight"
# The rows of an A drawn by kaiming_uniform(a=√5) have this length on average.
ROW = 1 / math.sqrt(3)


class Settings(fedavg.Settings):
    """Settings of averaging by product: those of federated averaging, with adapters.

    Attributes:
        secure_aggregation: Fixed, because products of factors can't be added under masks.
        server_optimizer: Fixed, because the server's rule is part of the method.
    """

    secure_aggregation: None = None
    server_optimizer: None = None

    @model_validator(mode="after")
    def _there_are_adapters(self) -> Self:
        if self.lora is None:
            raise ValueError("there are no products without adapters; set lora, or use fedavg")
        if len(self.lora.parametrization.trained) != 2:
            raise ValueError(f"lora.type {self.lora.type} trains no two factors; leave it out, or use fedavg")
        return self

    def plan(self, clients: Sequence[Client]) -> Plan:
        plan = super().plan(clients)
        return replace(plan, method=LoRAProduct(self.clients_per_round, self.local))


@dataclass(frozen=True)
class LoRAProduct(FedAvg):
    """Averaging by product.

    Attributes:
        shapes: The names and shapes of the tensors in a vector, in its order.
    """

    shapes: Mapping[str, torch.Size] = field(default_factory=dict)

    def with_layout(self, shapes: Mapping[str, torch.Size]) -> Method:
        return replace(self, shapes=shapes)

    def accumulator(self, weights: Tensor, state: State) -> "ProductMean":  # type: ignore[override]
        return ProductMean(weights, self.shapes)


class ProductMean:
    """Accumulates the clients' factors, K of each layer, and takes the mean of their products at the end."""

    def __init__(self, weights: Tensor, shapes: Mapping[str, torch.Size]) -> None:
        self._weights = weights
        self._shapes = shapes
        self._total = torch.zeros_like(weights)
        self._models: list[dict[str, Tensor]] = []

    def add(self, message: Message) -> None:
        self._total += message.vector
        named = _named(self._weights + message.vector, self._shapes)
        self._models.append({name: tensor for name, tensor in named.items() if name.endswith((DOWN, UP))})

    def result(self) -> Aggregate:
        mean = self._weights + self._total / max(len(self._models), 1)
        named = _named(mean, self._shapes)
        for name in named:
            if name.endswith(DOWN) and self._models:
                up = name.removesuffix(DOWN) + UP
                named[name], named[up] = mean_product(
                    [model[name] for model in self._models], [model[up] for model in self._models]
                )
        return Aggregate(self._total, torch.cat([tensor.reshape(-1) for tensor in named.values()]))


def mean_product(downs: Sequence[Tensor], ups: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return A (r, in) and B (out, r), whose product is of all with rank r the nearest to the mean of the products.

    The mean is never made whole: with all factors side by side it is Q_B·(R_B·R_Aᵀ)·Q_Aᵀ, of which the middle is small.

    Args:
        downs: A (r, in) of each client.
        ups: B (out, r) of each client.
    """
    rank = len(downs[0])
    across, along = torch.cat(list(ups), dim=1).double() / len(ups), torch.cat(list(downs)).double()
    left, small_left = torch.linalg.qr(across)
    right, small_right = torch.linalg.qr(along.T)
    u, values, v = torch.linalg.svd(small_left @ small_right.T)
    down = torch.zeros(rank, along.shape[1], dtype=torch.float64)
    up = torch.zeros(across.shape[0], rank, dtype=torch.float64)
    kept = min(rank, len(values))
    down[:kept] = ROW * (right @ v[:kept].T).T
    up[:, :kept] = (left @ u[:, :kept]) * values[:kept] / ROW
    return down.float(), up.float()


def _named(vector: Tensor, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    parts = torch.split(vector, [shape.numel() for shape in shapes.values()])
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
