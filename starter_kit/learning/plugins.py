"""Plug-ins of local training: optimizers, and hooks that correct the gradients of each step."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import Parameter

from starter_kit.learning.party_state import State
from starter_kit.plugin import Plugin, PluginKind

# Before the names of what a hook of the settings keeps at a client.
HOOK_STATE = "hook/"


class OptimizerPlugin(Plugin):
    """A local optimizer in a file of its own: a class `Optimizer` that is derived from this one."""

    @abstractmethod
    def build(self, parameters: list[Parameter], learning_rate: float) -> torch.optim.Optimizer:
        """Return a new optimizer, as every local training begins with one.

        What it returns may be a `ContinuingOptimizer`; elsewhere nothing is left of a training but its change. Its
        `state_dict` has all that later steps depend on: from that, a training that was interrupted is resumed.
        """

    def try_out(self) -> None:
        parameter = Parameter(torch.ones(2, 2))
        optimizer = self.build([parameter], 0.1)
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"build returns a torch.optim.Optimizer, not {type(optimizer).__name__}")
        optimizer.zero_grad()
        torch.autograd.backward(parameter.square().sum())
        optimizer.step()
        if not parameter.isfinite().all():
            raise ValueError("a step at 1 along the gradient 2 is not finite")


@runtime_checkable
class ContinuingOptimizer(Protocol):
    """An optimizer that continues from round to round, where a method keeps its client's state; such as Shampoo."""

    def export_state(self) -> State:
        """Return copies, on the CPU, of what later steps depend on, by name."""

    def restore_state(self, state: State) -> None:
        """Continue from what `export_state` returned. Raises ValueError for the state of other parameters."""


@dataclass(frozen=True)
class GradientStep:
    """One step of a local training, when its gradients are there and the optimizer has not used them.

    Attributes:
        number: From 1.
        parameters: What is trained. A gradient may be changed in place; it is None where the loss doesn't depend on it.
        start: The values that each parameter had before the first step, on the same device.
        learning_rate: Of the optimizer in this step.
        state: What the client keeps of the hook from round to round, by name; changed in place.
    """

    number: int
    parameters: Sequence[Parameter]
    start: Sequence[Tensor]
    learning_rate: float
    state: State


class Hook(Protocol):
    """A correction of each step's gradients, on the device of the model."""

    def correct(self, step: GradientStep) -> None:
        """Change the gradients of the step's parameters, in place."""

    def finish(self, step: GradientStep) -> None:
        """Take in the result of a training; `step` is its last one."""


class HookPlugin(Plugin):
    """A hook in a file of its own: a class `Hook` that is derived from this one.

    Attributes:
        keeps_state: Whether it keeps something at a client from round to round. A private run rejects that, since what
            one provider's training left would reach others.
    """

    keeps_state: ClassVar[bool] = False

    @abstractmethod
    def correct(self, step: GradientStep) -> None:
        """Change the gradients of the step's parameters, in place."""

    def finish(self, step: GradientStep) -> None:
        """Take in the result of a training; `step` is its last one."""

    def try_out(self) -> None:
        parameter = Parameter(torch.ones(2, 2))
        parameter.grad = torch.ones(2, 2)
        step = GradientStep(
            1, [parameter, Parameter(torch.ones(1))], [torch.zeros(2, 2), torch.ones(1)], 0.1, {}
        )
        self.correct(step)
        self.finish(step)
        if not parameter.grad.isfinite().all():
            raise ValueError("the gradient of a step is not finite after the hook")
        if step.state and not self.keeps_state:
            raise ValueError("it keeps something for later rounds, and keeps_state is not True")


OPTIMIZERS = PluginKind(
    "local.optimizer",
    "Optimizer",
    OptimizerPlugin,
    "local_optimizers",
    "--optimizer",
    "what a client or a provider trains with",
    ("adamw", "sgd", "shampoo"),
)
HOOKS = PluginKind(
    "local.hook", "Hook", HookPlugin, "hooks", "--hook", "a correction of each local step's gradients"
)


@dataclass
class HookedTraining:
    """The hooks of one local training.

    Args:
        hooks: Called in their order.
        optimizer: That of the training, with its parameters at their values before the first step.
        state: What the client keeps of the hooks; changed in place.
        steps: How many steps were made so far.
    """

    hooks: Sequence[Hook]
    optimizer: torch.optim.Optimizer
    state: State
    steps: int = 0
    _start: list[Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Copied only where somebody looks at them: they are as large as the model.
        self._start = [parameter.detach().clone() for parameter in self._parameters] if self.hooks else []

    @torch.no_grad()
    def correct(self) -> None:
        """Let all hooks correct the gradients of the next step."""
        self.steps += 1
        for hook in self.hooks:
            hook.correct(self._step())

    @torch.no_grad()
    def finish(self) -> None:
        """Let all hooks take in the result."""
        for hook in self.hooks:
            hook.finish(self._step())

    def _step(self) -> GradientStep:
        rate = float(self.optimizer.param_groups[0].get("lr", 0.0))
        return GradientStep(self.steps, self._parameters, self._start, rate, self.state)

    @property
    def _parameters(self) -> list[Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
