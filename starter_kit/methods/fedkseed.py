"""FedKSeed (Qin et al. 2023, arXiv:2312.06353): zeroth-order training, whose messages are seeds and scalars.

There are K directions, one for each of K seeds that all parties know. In a step, a client draws one of them, measures
how the loss changes along it with two passes forward, and moves against it. Its update consists of the seeds with the
sum of its steps along each. The model is what all parties start with plus a combination of the K directions, so a
client needs to receive K scalars. Nothing here is private.

The paper's directions are normal, and here their entries are ±1, which have the same mean and covariance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from pydantic import Field

from starter_kit.compression.directions import DirectionsCodec, combined, direction
from starter_kit.federation.rounds import Client, ClientTask, ClientUpdate
from starter_kit.learning.local_training import batches
from starter_kit.learning.zeroth_order import slope
from starter_kit.methods import fedavg
from starter_kit.settings.plan import Plan


class Settings(fedavg.Settings):
    """Settings of FedKSeed: those of federated averaging, of whose `local` training SGD's steps are taken along seeds.

    Attributes:
        codec: kseed, or another codec that sends scalars for seeds. Its number of seeds is K.
        distance: ε, how far from the model the loss is measured on both sides, in each weight.
    """

    distance: float = Field(default=1e-3, gt=0)

    def plan(self, clients: Sequence[Client]) -> Plan:
        plan = super().plan(clients)
        seeds = self.codec.seeds if isinstance(self.codec, DirectionsCodec) else 0
        method = FedKSeed(self.clients_per_round, self.local, self.server_optimizer, seeds, self.distance)
        return replace(plan, method=method)

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if not isinstance(self.codec, DirectionsCodec):
            yield f"FedKSeed sends seeds and scalars, which codec {self.codec} doesn't; set codec to kseed"
        if self.local.optimizer != "sgd" or self.local.momentum or not self.local.is_elementwise:
            yield (
                "FedKSeed takes plain steps along seeds; set local.optimizer to sgd, and leave out local.momentum, "
                "schedule, warmup_steps, max_gradient_norm and hook"
            )


@dataclass(frozen=True)
class FedKSeed(fedavg.FedAvg):
    """FedKSeed; `seeds` is K, and the other attributes are those of `Settings`."""

    seeds: int = 1024
    distance: float = 1e-3

    def client_update(self, task: ClientTask) -> ClientUpdate:
        drawn = task.stream.at("seeds").random()
        coefficients, losses = np.zeros(self.seeds), []
        weights = task.weights.clone()
        for batch in batches(task.client.examples, self.local, task.stream):
            seed = drawn.randrange(self.seeds)
            along = direction(seed, len(weights))
            found = slope(task.learner, weights, along, self.distance, batch)
            step = self.local.learning_rate * found.derivative
            coefficients[seed] -= step
            weights.add_(along, alpha=-step)
            losses.append(found.loss)
        change = combined(coefficients, len(weights))
        return ClientUpdate(
            change, sampled=len(task.client.providers), loss=fmean(losses) if losses else None
        )
