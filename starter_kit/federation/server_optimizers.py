"""Server optimizers: plug-ins that turn the mean update of a round into the next model."""

from abc import abstractmethod

import torch
from torch import Tensor

from evaluator.folding.server_step import stepped
from evaluator.records.server_steps import OtherStep, ServerStep
from starter_kit.learning.party_state import State
from starter_kit.plugin import Plugin, PluginKind


class ServerOptimizerPlugin(Plugin):
    """A server optimizer in a file of its own: a class `ServerOptimizer` that is derived from this one."""

    @abstractmethod
    def step(self, weights: Tensor, mean: Tensor, state: State) -> Tensor:
        """Return the model (d,) after a round.

        Args:
            weights: The model (d,) before it, which must stay as it is.
            mean: The mean update (d,), of the clients, or with privacy of the providers and noised.
            state: What the server keeps from round to round, by name; changed in place, and saved with the run.
        """

    def recorded(self) -> ServerStep:
        """Return what `step` does as a training record states it, which the evaluator does again.

        By default that nothing can be done again: nothing then ties the sums to the model, and such a run is flagged.
        """
        return OtherStep(description=f"server optimizer {self}")

    def try_out(self) -> None:
        weights, state = torch.ones(3), dict[str, Tensor]()
        for mean in (torch.ones(3), torch.zeros(3)):
            after = self.step(weights, mean, state)
            if not torch.equal(weights, torch.ones(3)):
                raise ValueError("a step returns a new model, and doesn't change the earlier one in place")
            if not isinstance(after, Tensor) or after.shape != weights.shape or after.dtype != torch.float32:
                raise TypeError(f"a step returns the model as a float32 vector of its size, not {after}")
            if not after.isfinite().all():
                raise ValueError("a step with the mean update 1 or 0 is not finite")
        self.recorded()


def computed_step(rule: ServerStep, weights: Tensor, mean: Tensor, state: State) -> Tensor:
    """Return the model (d,) after a step as the evaluator computes it, so that it can be computed again to the bit."""
    kept = {name: tensor.numpy() for name, tensor in state.items()}
    after = stepped(rule, weights.numpy(), mean.numpy(), kept)
    state.update({name: torch.from_numpy(vector) for name, vector in kept.items()})
    return torch.from_numpy(after)


SERVER_OPTIMIZERS = PluginKind(
    "server_optimizer",
    "ServerOptimizer",
    ServerOptimizerPlugin,
    "server_optimizers",
    "--server-optimizer",
    "how the server moves the model by the mean update",
)
