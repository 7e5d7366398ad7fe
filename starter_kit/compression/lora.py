"""Low-rank adapters: what is trained and sent in place of whole matrices.

A linear layer with weight W (out, in) becomes W + scale·U·D, with factors D (rank, in) and U (out, rank) that follow
from the parts of its adapter: see `evaluator.parametrizations`, which has each kind of adapters in a file of its own.
In the end the products are added to the weights, in float64 on the CPU as the evaluator does, and the checkpoint has
the tensors of the base weights and no others.

Adapters are kept beside the model and reach into it by hooks, so that no tensor of the model changes its name. `using`
puts stacks of trained parts (G, …) in their place for batches that are made of G groups: each group then passes through
its own adapters.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import Parameter
from torch.utils.hooks import RemovableHandle

from evaluator.errors import ErrorCode, ProblemError
from evaluator.parametrizations.core import NoSingularVectorsError
from evaluator.parametrizations.known import PARAMETRIZATIONS, check_known
from evaluator.parametrizations.lora import LORA
from evaluator.parametrizations.parametrization import (
    Doubles,
    Floats,
    NewAdapter,
    Parametrization,
    added,
    doubles,
)


class LoRA(BaseModel):
    """The settings of the adapters; the defaults are those of track 1's winner, who trained with a dropout of 0.1.

    Attributes:
        type: The parametrization, which says what is trained; docs/methods.md lists them.
        targets: Patterns for the names of the linear layers that get adapters. The head, whose weight is the embedding,
            gets none.
        dropout: The dropout probability of an adapter's input, in training.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Annotated[str, AfterValidator(check_known)] = LORA.name
    rank: int = Field(default=6, ge=1)
    alpha: float = Field(default=16.0, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: list[str] = Field(default=["language_backbone.*.q", "language_backbone.*.v"], min_length=1)

    @property
    def parametrization(self) -> Parametrization:
        """What is trained."""
        return PARAMETRIZATIONS[self.type]

    @property
    def scale(self) -> float:
        """The factor on the product."""
        return self.parametrization.scale(self.alpha, self.rank)


class Adapters:
    """The adapters of `model`, active from their creation on, except inside `merged`; they start from "".

    Attributes:
        settings: As given.
        parameters: All parts, `<layer>.lora_<letter>.weight`, in the order of the model's layers.
        trained: Those of them that are trained.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A target matches no linear layer, the rank is above a side of a layer, or a
            weight has no adapter of this kind.
    """

    def __init__(self, model: nn.Module, settings: LoRA) -> None:
        self.settings = settings
        self._kind = settings.parametrization
        self._layers = _targets(model, settings)
        device = next(iter(self._layers.values())).weight.device
        self.parameters = {
            name: Parameter(torch.from_numpy(values).to(device))
            for name, values in self.first_values("").items()
        }
        ends = tuple(part.suffix for part in self._kind.trained)
        self.trained = {name: part for name, part in self.parameters.items() if name.endswith(ends)}
        self._active: Mapping[str, Tensor] = {}
        self._model = model
        self._hooks = self._added_hooks()

    @property
    def targets(self) -> dict[str, str]:
        """The weight that each part is merged into, by the names of parts."""
        return {name + part.suffix: f"{name}.weight" for name in self._layers for part in self._kind.parts}

    def first_values(self, start: str) -> dict[str, Floats]:
        """Return the first values of all parts by their names.

        Args:
            start: What they follow from: a run token, or `seed N` where nothing is private.
        """
        values: dict[str, Floats] = {}
        for name, layer in self._layers.items():
            of_layer = self._first_values(name, layer, start)
            values |= {name + part.suffix: of_layer[part.letter] for part in self._kind.parts}
        return values

    def _first_values(self, name: str, layer: nn.Linear, start: str) -> dict[str, Floats]:
        shape = layer.out_features, layer.in_features
        try:
            return self._kind.first_values(
                NewAdapter(name, start, self.settings.rank, shape, lambda: _on_cpu(layer.weight))
            )
        except NoSingularVectorsError as error:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=f"lora.type {self._kind.name}, layer {name}",
                expected=error,
                found="another",
                next_step="Choose other lora.targets, a smaller lora.rank, or another lora.type.",
            ) from error

    @torch.no_grad()
    def start_from(self, start: str) -> dict[str, Tensor]:
        """Set the parts that aren't trained to their first values, and return the first values of those that are."""
        values = {name: torch.from_numpy(first) for name, first in self.first_values(start).items()}
        for name in self.parameters.keys() - self.trained.keys():
            self.parameters[name].copy_(values[name])
        return {name: values[name] for name in self.trained}

    def check_whole(self, names: Collection[str]) -> None:
        """Reject a choice of tensors to train that has only some of the trained parts of a layer.

        Raises:
            ProblemError: (`E_CONFIGURATION`) It does.
        """
        for layer in self._layers:
            left_out = [
                layer + part.suffix for part in self._kind.trained if layer + part.suffix not in names
            ]
            if 0 < len(left_out) < len(self._kind.trained):
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where="frozen",
                    expected=f"patterns that match all or none of the tensors that lora.type {self._kind.name} trains "
                    "in a layer",
                    found=f"{left_out[0]} alone",
                    next_step="Choose what is trained by lora.type; ffa-lora trains B and not A.",
                )

    def factors(self, name: str) -> tuple[Doubles, Doubles]:
        """Return the factors (D, U) of a layer's adapter in float64."""
        parts = {part.letter: _on_cpu(self.parameters[name + part.suffix]) for part in self._kind.parts}
        down, up = self._kind.factors(doubles(parts))
        return down, up

    def as_lora(self) -> dict[str, Tensor]:
        """Return the factors of all layers, float32, as `<layer>.lora_A.weight` and `<layer>.lora_B.weight`."""
        return {
            name + part.suffix: torch.from_numpy(factor.astype(np.float32))
            for name in self._layers
            for part, factor in zip(LORA.parts, self.factors(name), strict=True)
        }

    @contextmanager
    def using(self, stacked: Mapping[str, Tensor], sizes: Sequence[int]) -> Iterator[None]:
        """Pass batches in the block through the trained parts in `stacked` (G, ...), named as in `parameters`.

        Args:
            sizes: The number of rows of a batch that belong to the first of G, to the second and so on.
        """
        # With parts of different sizes, each row becomes its own part.
        if len(set(sizes)) > 1:
            device = next(iter(stacked.values())).device
            part = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)).to(device)
            stacked = {name: tensor.index_select(0, part) for name, tensor in stacked.items()}
        self._active = stacked
        try:
            yield
        finally:
            self._active = {}

    @contextmanager
    def merged(self) -> Iterator[None]:
        """In the block, add the adapters' products to the model's own weights, and keep all adapters inactive."""
        originals = {name: layer.weight.detach().clone() for name, layer in self._layers.items()}
        for hook in self._hooks:
            hook.remove()
        self._add_products()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, layer in self._layers.items():
                    layer.weight.copy_(originals[name])
            self._hooks = self._added_hooks()

    def _added_hooks(self) -> list[RemovableHandle]:
        return [layer.register_forward_hook(partial(self._add, name)) for name, layer in self._layers.items()]

    @torch.no_grad()
    def _add_products(self) -> None:
        for name, layer in self._layers.items():
            product = added(self.settings.scale, *self.factors(name))
            layer.weight.copy_(torch.from_numpy(_on_cpu(layer.weight) + product))

    def _add(self, name: str, layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        names = {part.letter: name + part.suffix for part in self._kind.parts}
        down, up = self._kind.factors(
            {letter: self._active.get(full, self.parameters[full]) for letter, full in names.items()}
        )
        entering = nn.functional.dropout(inputs[0], self.settings.dropout, self._model.training)
        down, up = (factor if factor.dim() == 3 else factor[None] for factor in (down, up))
        # A factor without a trained part is the same for all groups.
        groups = max(len(down), len(up))
        down, up = down.expand(groups, -1, -1), up.expand(groups, -1, -1)
        result: Tensor = _Added.apply(output, entering, down, self.settings.scale * up)  # type: ignore[no-untyped-call]
        return result


def _on_cpu(tensor: Tensor) -> Floats:
    values: Floats = tensor.detach().cpu().numpy()
    return values


class _Added(torch.autograd.Function):
    """output (B, ..., out) + x (B, ..., in) · downᵀ · upᵀ, with G parts of B for down (G, rank, in), up (G, out, rank).

    Autograd's own way has the same products in shapes that take up to four times as long, as rank is small.
    """

    @staticmethod
    def forward(ctx: Any, output: Tensor, x: Tensor, down: Tensor, up: Tensor) -> Tensor:
        parts = x.reshape(len(down), -1, x.shape[-1])
        low, rising = parts @ down.mT, up.mT.contiguous()
        ctx.save_for_backward(parts, low, down, rising)
        return torch.baddbmm(output.reshape(*parts.shape[:2], -1), low, rising).view(output.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, low, down, rising = ctx.saved_tensors
        for_output, for_x, for_down, for_up = ctx.needs_input_grad
        parts = gradient.reshape(*x.shape[:2], -1)
        of_low = parts @ rising.mT
        return (
            gradient if for_output else None,
            (of_low @ down).view(*gradient.shape[:-1], -1) if for_x else None,
            of_low.mT @ x if for_down else None,
            (low.mT @ parts).mT if for_up else None,
        )


def _targets(model: nn.Module, settings: LoRA) -> dict[str, nn.Linear]:
    # A tied weight is listed under its first name only: adding a product to it would change its other use as well.
    weights = {name for name, _ in model.named_parameters()}
    linear = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and f"{name}.weight" in weights
    }
    names = matching(linear, settings.targets, "lora.targets", "linear layer")
    sides = {name: min(linear[name].in_features, linear[name].out_features) for name in names}
    smallest = min(sides, key=sides.__getitem__)
    if sides[smallest] < settings.rank:
        # The factors would be larger than the layer, and add nothing.
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="lora.rank",
            expected=f"at most {sides[smallest]}, the smaller side of layer {smallest}",
            found=settings.rank,
        )
    return {name: linear[name] for name in names}


def matching(names: Iterable[str], patterns: Sequence[str], setting: str, kind: str) -> list[str]:
    """Return the names that match one of the patterns of `setting`, as in a shell, in their order.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A pattern matches none of the names, which are those of a `kind`.
    """
    known = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=f"{setting}, pattern {pattern}",
                expected=f"a pattern that matches a {kind} such as {known[0]}",
                found="no match",
            )
    return [name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns)]
