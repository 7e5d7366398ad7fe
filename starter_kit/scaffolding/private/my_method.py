"""Provider-level differential privacy with momentum at the server.

This is where your method begins: it works as it is. Say above, in a line, what it is and where it comes from.

Guarantees what FL-PROVIDER-DP does; my_method_proof.md says why, and must say so of whatever you change. In each round

1. providers are sampled, each by a coin of its own that no seed knows;
2. each of them trains from the model w by itself, and what that changed is clipped to L2 norm S, `clip_norm`;
3. their sum is noised: u = Σ clip(Δᵢ) + N(0, σ²S²);
4. with the expected number M of sampled providers, a public constant, the server sets

       v ← β·v + u/M
       w ← w + η·v

When you change a step, change the equations here and their test in test_my_method.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from starter_kit.federation.rounds import Aggregate, ClientTask, Sum
from starter_kit.learning.local_training import State
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.fl_provider_dp import ProviderDP


class Settings(fl_provider_dp.Settings):
    """What my_method.yaml may say beside the settings of FL-PROVIDER-DP. Whatever isn't named here is rejected.

    Attributes:
        momentum: β. (η is `server_learning_rate`, S is `clip_norm`.)
    """

    # The record says that the server does something else than to add u/M: whoever checks it can't recompute w.
    server_rule: ClassVar[Literal["sum", "other"]] = "other"

    momentum: float = Field(default=0.5, ge=0, lt=1)

    def extend(self, method: ProviderDP, clients: int) -> "MyMethod":
        return MyMethod(**vars(method), momentum=self.momentum)


@dataclass(frozen=True, kw_only=True)
class MyMethod(ProviderDP):
    """FL-PROVIDER-DP, with two steps to change."""

    momentum: float

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        # What one provider contributes, before it is clipped. It may be anything that follows from the round's model,
        # from released values and from this provider's own examples; never from another provider's, which is what
        # clipping can't fix. What is yielded is clipped and noised afterwards, whatever it is.
        yield from task.learner.provider_changes(task.weights, providers, self.local, task.stream)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        # What `super()` gives has its noise and is released: anything may be made of it, at no cost of privacy.
        # Never use how many providers took part; M is their expected number.
        released = super().aggregate(weights, received, state).total
        velocity = self.momentum * state.get("velocity", torch.zeros_like(weights)) + released / self.divisor
        state["velocity"] = velocity
        return Aggregate(released, weights + self.server_learning_rate * velocity)
