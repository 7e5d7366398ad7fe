"""Provider-level differential privacy with momentum at the server.

This is a working method to start from. Replace the line above with the name and the source of your method.

Has the same guarantee as FL-PROVIDER-DP; my_method_proof.md has the proof, which must cover all your changes. In each
round,

1. each provider is sampled by its own coin, which depends on no seed;
2. each sampled provider trains separately from the model w, and its update is clipped to L2 norm S, `clip_norm`;
3. their sum is noised: u = Σ clip(Δᵢ) + N(0, σ²S²);
4. with the expected number M of sampled providers, a public constant, the server sets

       v ← β·v + u/M
       w ← w + η·v

When you change a step, change the equations here and their test in test_my_method.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor

from evaluator.records.server_steps import MomentumStep, ServerStep
from starter_kit.federation.rounds import Aggregate, ClientTask, Sum
from starter_kit.learning.local_training import State
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.fl_provider_dp import ProviderDP


class Settings(fl_provider_dp.Settings):
    """Settings of my_method.yaml in addition to those of FL-PROVIDER-DP. Any other setting is rejected.

    Attributes:
        momentum: β. (η is `server_learning_rate`, S is `clip_norm`.)
    """

    momentum: float = Field(default=0.5, ge=0, lt=1)

    def extend(self, method: ProviderDP, clients: int) -> "MyMethod":
        return MyMethod(**vars(method), momentum=self.momentum)

    def server_step(self, method: ProviderDP) -> ServerStep:
        # Declares in the record what `aggregate` does with u. The evaluator repeats this step and rejects a run whose
        # model differs from the result. For a rule that isn't in evaluator.records.server_steps, return
        # OtherStep(description="…"). No check can then show that the sums led to the model, and the run is flagged.
        return MomentumStep(learning_rate=method.server_learning_rate, momentum=self.momentum)


@dataclass(frozen=True, kw_only=True)
class MyMethod(ProviderDP):
    """FL-PROVIDER-DP with two steps that you may change."""

    momentum: float

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        # The update of one provider, before it is clipped. It may depend on the round's model, on released values and
        # on this provider's own examples, but never on another provider's: clipping doesn't protect against that.
        # Every yielded update is clipped and noised afterwards.
        yield from task.learner.provider_changes(task.weights, providers, self.local, task.stream)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        # The total returned by `super()` is noised and released, so computing anything from this total costs no
        # privacy. Never use the number of providers that took part; M is their expected number.
        released = super().aggregate(weights, received, state).total
        velocity = self.momentum * state.get("velocity", torch.zeros_like(weights)) + released / self.divisor
        state["velocity"] = velocity
        return Aggregate(released, weights + self.server_learning_rate * velocity)
