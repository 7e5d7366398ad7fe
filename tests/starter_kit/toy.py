"""A toy federation: linear regression, small enough to compute by hand what a round must do."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from starter_kit.compression.codecs import codec
from starter_kit.engines.local import LocalEngine
from starter_kit.learning import Learner
from starter_kit.randomness import Stream
from starter_kit.rounds import Client, Method, Openly, Participant, Server
from starter_kit.tensors import TrainableTensors
from starter_kit.wire import Wire

DIMENSION = 8
STREAM = Stream(7)


def wire_from(start: Tensor, codec_name: str = "float32") -> Wire:
    return Wire(codec(codec_name), start)


def server(
    method: Method, clients: Sequence[Client], learner: Learner, start: Tensor, *, codec_name: str = "float32"
) -> Server:
    """A whole federation in this process."""
    gathering = Openly(wire_from(start, codec_name))
    participant = Participant(method, clients, learner, gathering, STREAM)
    return Server(method, LocalEngine(participant), gathering, STREAM)


class Toy:
    """`examples` points of a linear function; each provider has two of them, each client `providers` providers."""

    def __init__(self, clients: int = 4, providers: int = 5) -> None:
        generator = torch.Generator().manual_seed(7)
        count = clients * providers * 2
        self.inputs = torch.randn(count, DIMENSION, generator=generator)
        self.truth = torch.linspace(-1, 1, DIMENSION)
        self.model = nn.Linear(DIMENSION, 1, bias=False)
        nn.init.zeros_(self.model.weight)
        self.learner = Learner(TrainableTensors(dict(self.model.named_parameters())), self.loss)
        self.clients = [
            Client(
                client,
                {
                    f"provider-{client}-{provider}": [index, index + 1]
                    for provider in range(providers)
                    for index in [2 * (client * providers + provider)]
                },
            )
            for client in range(clients)
        ]
        self.weights = torch.zeros(DIMENSION)

    def server(self, method: Method) -> Server:
        return server(method, self.clients, self.learner, self.weights)

    def loss(self, examples: Sequence[int]) -> Tensor:
        inputs = self.inputs[list(examples)]
        predicted: Tensor = self.model(inputs).squeeze(-1)
        return (predicted - inputs @ self.truth).square().mean()

    def distance(self, weights: Tensor) -> float:
        """How far `weights` are from the function that made the data."""
        return float((weights - self.truth).norm())
