"""FL-PROVIDER-DP with a clip norm that follows a quantile of the updates' norms (Andrew et al. 2021, arXiv:1905.03871).

Guarantees (ε, δ) for one provider, added or removed, as FL-PROVIDER-DP does with noise drawn by the server; the proof
is in docs/proofs/adaptive-clipping.md. In each round, with the round's clip norm C, public, from C = `clip_norm` on,

1. providers are sampled, trained and clipped to C as there; beside its clipped update, each adds b − 1/2, where b is
   1 if its update was not longer than C and 0 otherwise;
2. the server adds N(0, σ_Δ²·C²) to each coordinate of the sum of updates and N(0, σ_b²) to the sum of b − 1/2;
3. with M, the expected number of sampled providers, w ← w + η·u/M for the noised sum u, and for the noised sum v of
   b − 1/2,

       C ← C·exp(−η_C·(v/M + 1/2 − γ)),      between 10⁻³ and 10³ times `clip_norm`.

Divided by their noise, both releases of a round are one Gaussian mechanism: a provider moves the first by at most 1/σ_Δ
and the second by 1/(2σ_b), so that together they have the noise multiplier σ with σ⁻² = σ_Δ⁻² + (2σ_b)⁻². σ is what the
budget determines and the accountant sees. With κ, the `count_share`, σ_Δ = σ/√(1 − κ) and σ_b = σ/(2√κ).

A training record has one clip norm for the run, one vector as long as the model for a round and nothing of a second
release, so this method writes none: its run reports ε and can't be submitted to track 2.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from pydantic import Field
from torch import Tensor

from evaluator.mechanisms.noise import Placement
from starter_kit.dp.clipping import clip
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.noise import with_gaussian_noise
from starter_kit.federation.auxiliary import AUXILIARY, AuxiliaryVectors
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import State
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.fl_provider_dp import ProviderDP
from starter_kit.settings.plan import Plan

# How far the clip norm may get from the first one, by a factor.
FARTHEST = 1e3
# The grid of the noised count, whose sum is of halves.
COUNT_STEP = 2.0**-16


@dataclass(frozen=True, kw_only=True)
class AdaptiveClipping(ProviderDP):
    """Adaptive clipping.

    Attributes:
        quantile: γ.
        clip_learning_rate: η_C.
        count_share: κ.
    """

    quantile: float
    clip_learning_rate: float
    count_share: float

    @property
    def update_multiplier(self) -> float:
        """σ_Δ, the noise of updates over the clip norm."""
        return float(self.noise.noise.multiplier / (1 - self.count_share) ** 0.5)

    @property
    def count_std(self) -> float:
        """σ_b, the noise of the sum of b − 1/2."""
        return float(self.noise.noise.multiplier / (2 * self.count_share**0.5))

    def client_update(self, task: ClientTask) -> ClientUpdate:
        # What travels is the logarithm of C over the first C, so that both sides begin with zero.
        bound = self._clip_norm(float(task.auxiliary[0]))
        task = replace(task, weights=task.weights.to(task.learner.device))
        total, below = torch.zeros_like(task.weights), 0.0
        sampled = self.sampled(task)
        for change in self.provider_updates(task, {name: task.client.providers[name] for name in sampled}):
            clipped = clip(change, bound)
            if clipped is None:
                self.discarded[task.client.id] += 1
            else:
                self._mechanism(bound).add(total, clipped, task.clients)
            below += 0.5 if clipped is not None and torch.equal(clipped, change) else -0.5
            # As large as all weights: the next provider trains without them in memory.
            del change, clipped
        return ClientUpdate(torch.cat([total.cpu(), torch.tensor([below])]), sampled=len(sampled))

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        return Sum(torch.cat([weights, torch.zeros(1)]), state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        logarithm = float(state[AUXILIARY][0]) if AUXILIARY in state else 0.0
        updates, below = received.total[:-1], received.total[-1:]
        total = self._mechanism(self._clip_norm(logarithm)).noised_by_server(updates)
        counted = float(with_gaussian_noise(below, self.count_std, COUNT_STEP, self.noise.keystream))
        logarithm -= self.clip_learning_rate * (counted / self.divisor + 0.5 - self.quantile)
        state[AUXILIARY] = torch.tensor([min(max(logarithm, -math.log(FARTHEST)), math.log(FARTHEST))])
        return Aggregate(total, weights[:-1] + total * (self.server_learning_rate / self.divisor))

    def _mechanism(self, clip_norm: float) -> GaussianSum:
        noise = self.noise.noise.model_copy(update={"multiplier": self.update_multiplier})
        return replace(self.noise, clip_norm=clip_norm, noise=noise)

    def _clip_norm(self, logarithm: float) -> float:
        return self.noise.clip_norm * math.exp(logarithm)


class Settings(fl_provider_dp.Settings):
    """Settings of adaptive clipping: those of FL-PROVIDER-DP, with noise drawn by the server.

    Attributes:
        clip_norm: The clip norm of the first round.
        quantile: γ, the target share of updates that are no longer than the clip norm.
        clip_learning_rate: η_C, how fast the clip norm follows.
        count_share: κ, the share of σ⁻² that the second release uses up.
        max_weight_noise: Fixed, because the noise of later rounds is not known before.
        server_optimizer: Fixed, because the server's rule is part of the method.
    """

    quantile: float = Field(default=0.5, gt=0, lt=1)
    clip_learning_rate: float = Field(default=0.2, gt=0)
    count_share: float = Field(default=0.05, gt=0, lt=1)
    max_weight_noise: None = None
    server_optimizer: None = None

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.placement is not Placement.SERVER:
            yield "adaptive clipping works with placement server, which draws the noise of both sums"

    def plan(self, clients: Sequence[Client]) -> Plan:
        return replace(super().plan(clients), record_terms=None, auxiliary=AuxiliaryVectors(numbers=1))

    def extend(self, method: ProviderDP, clients: int) -> AdaptiveClipping:
        return AdaptiveClipping(
            **vars(method),
            quantile=self.quantile,
            clip_learning_rate=self.clip_learning_rate,
            count_share=self.count_share,
        )
