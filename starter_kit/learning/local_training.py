"""Local training: from given weights, a few optimizer steps on given examples, and the change that they make.

The result depends on the weights, the examples and the stream's number, and on nothing else: the optimizer starts again
each time, except for what a method keeps in `state` on purpose. Provider-level privacy depends on that, because one
provider must not influence another's update; a provider's stream contains its name, so that it doesn't depend on which
other providers there are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Annotated, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from starter_kit.learning.pacing import Pace, steps_of
from starter_kit.learning.party_state import State as State
from starter_kit.learning.party_state import put_back, taken
from starter_kit.learning.plugins import (
    HOOK_STATE,
    HOOKS,
    OPTIMIZERS,
    ContinuingOptimizer,
    Hook,
    HookedTraining,
    HookPlugin,
    OptimizerPlugin,
)
from starter_kit.learning.shampoo import Shampoo
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.learning.training_saves import SavedTraining, TrainingSaves, training_key
from starter_kit.optimizers import SGD, AdamW
from starter_kit.plugin import WRITER
from starter_kit.randomness import Stream


class ShampooSettings(BaseModel):
    """Settings of `starter_kit.learning.shampoo.Shampoo`; the defaults are the paper's.

    Attributes:
        element_clip: The largest step of a single weight, before the learning rate.
        statistics_every, roots_every: Steps between two updates of the statistics, and of their inverse roots.
        ridge: ρ, added to the statistics' diagonal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    element_clip: float = Field(default=0.2, gt=0)
    statistics_every: int = Field(default=10, ge=1)
    roots_every: int = Field(default=100, ge=1)
    ridge: float = Field(default=1e-4, gt=0)


class LocalTraining(BaseModel):
    """How a client, or a provider, trains on its own examples.

    Attributes:
        epochs: Passes over the examples, each in a new random order.
        max_steps: Maximum number of optimizer steps; null for no limit.
        batch_size: Examples in a step.
        schedule: How the learning rate decreases from the first to the last step of a local training. Each
        local training starts over.
        warmup_steps: Steps in which the learning rate first rises to its full size.
        max_gradient_norm: The bound on the L2 norm of a step's gradient; null for none. This bound doesn't
        affect privacy, which depends on the clip norm of the whole update.
        weight_decay: AdamW's weight decay.
        adam_epsilon: AdamW's ε. Large values, above the gradients' size, make a step proportional to the gradient.
        momentum: SGD's momentum.
        hook: A correction of each step's gradients, such as FedProx's; null for none.
        providers_at_once: How many providers train at once, if possible (`starter_kit.learning.stacking`).
        This affects time and memory, but not results. null for as many as fit into 512 MiB or, on a GPU,
        into a quarter of its memory.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(default=1, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=16, ge=1)
    optimizer: Annotated[Literal["adamw", "sgd", "shampoo"] | OptimizerPlugin, OPTIMIZERS.reader, WRITER] = (
        "adamw"
    )
    learning_rate: float = Field(gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    max_gradient_norm: float | None = Field(default=None, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    adam_epsilon: float = Field(default=1e-8, gt=0)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    shampoo: ShampooSettings = ShampooSettings()
    hook: Annotated[HookPlugin | None, HOOKS.reader, WRITER] = None
    providers_at_once: int | None = Field(default=None, ge=1)

    @property
    def paces_steps(self) -> bool:
        """Whether the learning rate differs from step to step."""
        return self.schedule != "constant" or self.warmup_steps > 0

    @property
    def is_elementwise(self) -> bool:
        """Whether a step treats each number by itself and all steps alike, so that providers can share a stack."""
        return (
            self.optimizer in ("adamw", "sgd")
            and self.hook is None
            and not self.paces_steps
            and self.max_gradient_norm is None
        )

    @model_validator(mode="after")
    def _momentum_is_used(self) -> Self:
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(
                f"momentum does nothing under {self.optimizer}; set optimizer to sgd or momentum to 0"
            )
        return self


@dataclass(frozen=True)
class Trained:
    """The result of a local training.

    Attributes:
        change: The change in the weights (d,) float32.
        loss: The mean loss over the batches; None without any.
    """

    change: Tensor
    loss: float | None


@dataclass(frozen=True)
class LocalStep:
    """A step of a local training: `done` of `total`.

    Attributes:
        losses: The losses of all steps so far, on the device: reading one waits for it.
    """

    done: int
    total: int
    losses: Sequence[Tensor]

    @property
    def recent_loss(self) -> float:
        """The mean loss of the last steps, 100 at most."""
        return float(torch.stack(list(self.losses[-100:])).mean())


class Learner:
    """A model with its training examples, addressed by their indexes.

    Args:
        tensors: The trained tensors.
        loss: Returns the mean loss, a scalar, over the examples of the given indexes.
        backward: Adds the gradient of that loss to the tensors and returns the loss, perhaps in parts; by default in
            one pass.
        prepare: Called with the examples of the next step, which can be read meanwhile.

    Attributes:
        on_step: Called after each step of `train`; set it only where nothing is private.
        saves: Where `train` saves its state every so many steps, and resumes from; likewise.
    """

    def __init__(
        self,
        tensors: TrainableTensors,
        loss: Callable[[Sequence[int]], Tensor],
        *,
        backward: Callable[[Sequence[int]], Tensor] | None = None,
        prepare: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        self.tensors = tensors
        self.on_step: Callable[[LocalStep], None] | None = None
        self.saves: TrainingSaves | None = None
        self._loss = loss
        self._backward = backward or self._backward_at_once
        self._prepare = prepare

    @property
    def device(self) -> torch.device:
        """Where the model trains."""
        return next(iter(self.tensors.parameters.values())).device

    def train(
        self,
        weights: Tensor,
        examples: Sequence[int],
        local: LocalTraining,
        stream: Stream,
        state: State | None = None,
        hook: Hook | None = None,
    ) -> Trained:
        """Train from `weights` (d,) on `examples`, and return the change (d,), which is zero without examples.

        The change is on the device of `weights`, whichever the model is on.

        Args:
            state: Where an optimizer that continues from round to round stores its statistics; changed in place.
            hook: A correction of each step's gradients by the method, after that of the settings. What it holds is not
                saved, so that such a training is never resumed.
        """
        if not examples:
            return Trained(torch.zeros_like(weights), None)
        self.tensors.write(weights)
        # What hooks keep in the state is none of the optimizer's.
        of_hooks = {} if state is None else taken(state, HOOK_STATE)
        optimizer = make_optimizer(list(self.tensors.parameters.values()), local, state)
        hooked = HookedTraining(
            [known for known in (local.hook, hook) if known is not None], optimizer, of_hooks
        )
        losses: list[Tensor] = []
        saved = None
        if self.saves and hook is None and steps_of(len(examples), local) > self.saves.every:
            key = training_key(weights, examples, local.model_dump_json(), stream.number)
            saved = SavedTraining(self.saves, key, self.tensors, optimizer, of_hooks, losses)
        with seeded(stream.number, self.tensors.cuda_devices):
            hooked.steps = saved.restore() if saved else 0
            pace = Pace(optimizer, local, len(examples), hooked.steps)
            for batch in self._prepared(islice(batches(examples, local, stream), hooked.steps, None)):
                optimizer.zero_grad()
                losses.append(self._backward(batch))
                pace.prepare_step()
                hooked.correct()
                optimizer.step()
                if saved:
                    saved.after_step()
                if self.on_step:
                    self.on_step(LocalStep(len(losses), steps_of(len(examples), local), losses))
        optimizer.zero_grad()
        if state is not None and isinstance(optimizer, ContinuingOptimizer):
            state.update(optimizer.export_state())
        hooked.finish()
        if state is not None:
            put_back(state, HOOK_STATE, of_hooks)
        change = self.tensors.read(weights.device).sub_(weights)
        return Trained(change, float(torch.stack(losses).mean()))

    def provider_changes(
        self, weights: Tensor, providers: Mapping[str, Sequence[int]], local: LocalTraining, stream: Stream
    ) -> Iterator[Tensor]:
        """Yield the change (d,) that each provider's own training from `weights` (d,) makes, one after another."""
        for name, examples in providers.items():
            yield self.train(weights, examples, local, stream.at("provider", name)).change

    def gradient(self, weights: Tensor, examples: Sequence[int], batch_size: int) -> Tensor:
        """Return the gradient (d,) of the examples' mean loss at `weights` (d,); zero without examples.

        Batches are weighted by their number of examples.
        """
        total = torch.zeros_like(weights)
        self.tensors.write(weights)
        for start in range(0, len(examples), batch_size):
            batch = examples[start : start + batch_size]
            self._backward(batch)
            total += self.tensors.take_gradient() * (len(batch) / len(examples))
        return total

    def _backward_at_once(self, batch: Sequence[int]) -> Tensor:
        loss = self._loss(batch)
        torch.autograd.backward(loss)
        return loss.detach()

    def _prepared(self, steps: Iterator[list[int]]) -> Iterator[list[int]]:
        """Yield the batches, each after the one that follows it is being prepared."""
        for current, following in pairwise(chain(steps, [None])):
            if following is not None and self._prepare:
                self._prepare(following)
            if current is not None:
                yield current


@contextmanager
def seeded(seed: int, cuda_devices: Sequence[torch.device]) -> Iterator[None]:
    """Let dropout on the CPU and on the given GPUs follow from `seed`; all generators go on afterwards as before."""
    with torch.random.fork_rng(devices=cuda_devices):
        # Not `torch.manual_seed`: on a machine without a GPU it formats the stack for each kind of GPU that might come
        # to life later, which takes a twelfth of a small model's training.
        torch.default_generator.manual_seed(seed)
        for device in cuda_devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def batches(examples: Sequence[int], local: LocalTraining, stream: Stream) -> Iterator[list[int]]:
    """Yield the batches of one local training in order, the same ones for the same stream."""
    draw = stream.at("batches").random()
    steps = 0
    for _ in range(local.epochs):
        order = list(examples)
        draw.shuffle(order)
        for start in range(0, len(order), local.batch_size):
            if steps == local.max_steps:
                return
            yield order[start : start + local.batch_size]
            steps += 1


def make_optimizer(
    parameters: list[torch.nn.Parameter], local: LocalTraining, state: State | None = None
) -> torch.optim.Optimizer:
    """Return a new optimizer of the kind in the settings; one that continues does so from `state`.

    Raises:
        ValueError: `state` doesn't fit the parameters.
    """
    match local.optimizer:
        case "adamw":
            return AdamW(
                parameters,
                lr=local.learning_rate,
                weight_decay=local.weight_decay,
                eps=local.adam_epsilon,
                fused=True,
            )
        case "sgd":
            return SGD(parameters, lr=local.learning_rate, momentum=local.momentum, fused=True)
        case "shampoo":
            shampoo = Shampoo(parameters, lr=local.learning_rate, **local.shampoo.model_dump())
            return _continued(shampoo, state)
        case OptimizerPlugin() as plugin:
            return _continued(plugin.build(parameters, local.learning_rate), state)


def _continued(optimizer: torch.optim.Optimizer, state: State | None) -> torch.optim.Optimizer:
    if state and isinstance(optimizer, ContinuingOptimizer):
        optimizer.restore_state(state)
    return optimizer
