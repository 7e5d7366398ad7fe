"""DP-CLGECL (PFL-DocVQA competition paper, appendix D.2, algorithm 2): FL-PROVIDER-DP with dual variables.

Clients' data differ, and each client pulls the model in its own direction. A client's dual variable λ (d,) accumulates
how far the server's model was from the client's own, and is added to each of its providers' updates. In a round that
starts from the server's model w, a client

1. sets λ = 0 at its first participation and λ ← λ + w − w′ later, with w′ its own model after the last one;
2. lets each sampled provider train from w, adds λ to what that changed, and clips the two together to `clip_norm`;
3. sends s, the sum of these with its own noise on it;
4. keeps λ and w′ = w + η·s/M, with the server learning rate η, which is 1 in the paper, and M, the expected number of
   providers that a client samples: a public constant, the same for all clients.

The server takes w ← w + η·Σs/(E·M), with the expected number E of clients: the mean of all w′ where all take part.

Guarantees what FL-PROVIDER-DP does with placement `client_full`, because λ follows from models and noised messages
alone; the proof is in docs/proofs/dp-clgecl.md. Any other placement is rejected: w′ would contain updates without
noise, and λ would carry them into later rounds.

The paper draws the first λ at random. Zero is as public, and gives no client a pull that doesn't come from its data.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from evaluator.mechanisms.noise import Placement
from starter_kit.federation.rounds import ClientTask, ClientUpdate
from starter_kit.learning.local_training import State
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.fl_provider_dp import ProviderDP

# The names of λ and w′ in a client's state.
DUAL, MODEL = "dual", "model"


@dataclass(frozen=True, kw_only=True)
class DPCLGECL(ProviderDP):
    """FL-PROVIDER-DP with dual variables.

    Attributes:
        client_step: η/M, the factor on a client's message in the step of the client's own model.
    """

    client_step: float

    def client_update(self, task: ClientTask) -> ClientUpdate:
        dual = _dual(task.weights, task.state)
        update = super().client_update(replace(task, state={DUAL: dual.to(task.learner.device)}))
        task.state.update({DUAL: dual, MODEL: task.weights + self.client_step * update.message})
        return update

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        # Not a generator, which would keep a provider's update in memory while the next one trains.
        return map(task.state[DUAL].add, super().provider_updates(task, providers))


class Settings(fl_provider_dp.Settings):
    """Settings of DP-CLGECL: those of FL-PROVIDER-DP, with noise drawn by the clients."""

    not_replayable: ClassVar[str] = (
        "its clients keep dual variables from round to round, to which the training record doesn't commit"
    )

    client_vectors: ClassVar[int] = 2

    placement: Placement = Placement.CLIENT_FULL

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.server_optimizer:
            yield (
                "a client's own model takes the server's step η·s/M, so that DP-CLGECL has no server_optimizer"
            )
        if self.placement is not Placement.CLIENT_FULL:
            yield (
                f"with placement {self.placement}, a client's dual variable would carry its providers' updates without "
                "noise into later rounds; DP-CLGECL works with placement client_full only"
            )

    def extend(self, method: ProviderDP, clients: int) -> DPCLGECL:
        expected_providers = method.divisor / method.sampling.clients(clients).mean
        return DPCLGECL(**vars(method), client_step=method.server_learning_rate / expected_providers)


def _dual(weights: Tensor, state: State) -> Tensor:
    """Return λ (d,) of a round that starts from `weights` (d,)."""
    return state[DUAL] + weights - state[MODEL] if DUAL in state else torch.zeros_like(weights)
