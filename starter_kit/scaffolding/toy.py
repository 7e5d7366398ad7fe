"""A federation small enough to compute a round by hand: linear regression on made-up points.

It is meant for tests of custom methods, takes milliseconds, and needs no base weights.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from starter_kit.compression.codecs import Codec, codec
from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.federation.auxiliary import NO_AUXILIARY, AuxiliaryVectors
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.plain_aggregation import PlainAggregation
from starter_kit.federation.rounds import Client, Method, Participant, Round, Server
from starter_kit.federation.wire import Wire
from starter_kit.learning.local_training import Learner
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.randomness import Stream
from starter_kit.settings.run_settings import RunSettings

DIMENSION = 8


class Toy:
    """Clients with the same number of providers, each of which has two points of one linear function.

    Attributes:
        inputs: The points (n, d), in the order of their indexes.
        truth: The function (d,), which training is to find.
        weights: The model (d,) that it starts from: zero.
    """

    def __init__(self, clients: int = 4, providers: int = 5) -> None:
        generator = torch.Generator().manual_seed(7)
        self.truth = torch.linspace(-1, 1, DIMENSION)
        self.weights = torch.zeros(DIMENSION)
        self.inputs = torch.randn(clients * providers * 2, DIMENSION, generator=generator)
        self.model = nn.Linear(DIMENSION, 1, bias=False)
        nn.init.zeros_(self.model.weight)
        self.learner = Learner(TrainableTensors(dict(self.model.named_parameters())), self.loss)
        self.clients = [
            Client(client, {f"provider {number}": [2 * number, 2 * number + 1] for number in numbers})
            for client in range(clients)
            for numbers in [range(client * providers, (client + 1) * providers)]
        ]

    def loss(self, examples: Sequence[int]) -> Tensor:
        """Return the mean squared error, a scalar, on the points of these indexes."""
        inputs = self.inputs[list(examples)]
        predicted: Tensor = self.model(inputs).squeeze(-1)
        return (predicted - inputs @ self.truth).square().mean()

    def distance(self, weights: Tensor) -> float:
        """Return the distance of `weights` (d,) from the function."""
        return float((weights - self.truth).norm())

    def server(
        self,
        method: Method,
        seed: int = 7,
        *,
        messages: Codec | CodecPlugin | None = None,
        auxiliary: AuxiliaryVectors = NO_AUXILIARY,
    ) -> Server:
        """Build the whole federation in this process, and return its server.

        Args:
            messages: The codec; None for float32.
            auxiliary: The auxiliary vectors, as in the method's plan.
        """
        stream = Stream(seed)
        start = torch.cat([self.weights, self.weights.new_zeros(auxiliary.size(DIMENSION))])
        aggregation = PlainAggregation(Wire(messages or codec("float32"), start))
        participant = Participant(method, self.clients, self.learner, aggregation, stream, auxiliary)
        return Server(method, LocalEngine(participant), aggregation, stream, auxiliary=auxiliary)

    def run(self, method: Method, rounds: int, seed: int = 7) -> list[Round]:
        """Run the first `rounds` rounds from `weights`."""
        return list(run_rounds(self.server(method, seed), self.weights, range(1, rounds + 1)))

    def run_settings(self, settings: RunSettings, rounds: int) -> list[Round]:
        """Run the first `rounds` rounds from `weights` with the method and the codec of `settings`."""
        plan = settings.plan(self.clients)
        shapes = plan.auxiliary.layout([self.model.weight.shape])
        chosen = settings.codec
        messages = chosen.with_layout(shapes) if isinstance(chosen, CodecPlugin) else codec(chosen)
        server = self.server(plan.method, settings.seed, messages=messages, auxiliary=plan.auxiliary)
        return list(run_rounds(server, self.weights, range(1, rounds + 1)))


def run_rounds(server: Server, weights: Tensor, numbers: Iterable[int]) -> Iterator[Round]:
    """Run the rounds of these numbers, the first from `weights` (d,), and yield each when it ends."""
    for number in numbers:
        finished = server.round(number, weights)
        yield finished
        weights = finished.weights
