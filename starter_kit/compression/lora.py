"""Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): what is trained and sent in place of whole matrices.

A linear layer with weight W (out, in) becomes W + (alpha/rank)·B·A with A (rank, in) and B (out, rank), of which only A
and B are trained. B begins at zero, so that training starts from the base model. In the end the products are added to
the weights, and the checkpoint has the tensors of the base weights and no others.

Adapters are kept beside the model and reach into it by hooks, so that no tensor of the model changes its name. `using`
puts stacked adapters (G, rank, in) and (G, out, rank) in their place for batches that are made of G parts: each part
then passes through its own adapters.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import Parameter
from torch.utils.hooks import RemovableHandle

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.randomness import Stream


class LoRA(BaseModel):
    """The settings of the adapters; the defaults are those of track 1's winner, who trained with a dropout of 0.1.

    Attributes:
        targets: Patterns for the names of the linear layers that get adapters. The head, whose weight is the embedding,
            gets none.
        dropout: The dropout probability of an adapter's input, in training.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = Field(default=6, ge=1)
    alpha: float = Field(default=16.0, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: list[str] = Field(default=["language_backbone.*.q", "language_backbone.*.v"], min_length=1)

    @property
    def scale(self) -> float:
        """The factor on B·A."""
        return self.alpha / self.rank


class Adapters:
    """The adapters of `model`, active from their creation on, except inside `merged`.

    Args:
        stream: The source of the initial values of A: the same for every party of a run.

    Attributes:
        settings: As given.
        parameters: `<layer>.lora_A.weight` and `<layer>.lora_B.weight` for each layer, in the model's order.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A target matches no linear layer, or the rank is above a side of a layer.
    """

    def __init__(self, model: nn.Module, settings: LoRA, stream: Stream) -> None:
        self.settings = settings
        self._layers = _targets(model, settings)
        self.parameters: dict[str, Parameter] = {}
        generator = torch.Generator().manual_seed(stream.at("adapters").number)
        for name, layer in self._layers.items():
            down = torch.empty(settings.rank, layer.in_features)
            nn.init.kaiming_uniform_(down, a=math.sqrt(5), generator=generator)
            device = layer.weight.device
            self.parameters[f"{name}.lora_A.weight"] = Parameter(down.to(device))
            self.parameters[f"{name}.lora_B.weight"] = Parameter(
                torch.zeros(layer.out_features, settings.rank, device=device)
            )
        self._active: Mapping[str, Tensor] = self.parameters
        self._model = model
        self._hooks = self._added_hooks()

    @contextmanager
    def using(self, stacked: Mapping[str, Tensor], sizes: Sequence[int]) -> Iterator[None]:
        """Pass batches in the block through the tensors in `stacked` (G, ...), named as in `parameters`.

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
            self._active = self.parameters

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
            down, up = self.parameters[f"{name}.lora_A.weight"], self.parameters[f"{name}.lora_B.weight"]
            layer.weight += self.settings.scale * (up @ down)

    def _add(self, name: str, layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        down, up = self._active[f"{name}.lora_A.weight"], self._active[f"{name}.lora_B.weight"]
        entering = nn.functional.dropout(inputs[0], self.settings.dropout, self._model.training)
        if down.dim() == 2:
            down, up = down[None], up[None]
        added: Tensor = _Added.apply(output, entering, down, self.settings.scale * up)  # type: ignore[no-untyped-call]
        return added


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
        for_output, for_x, _, _ = ctx.needs_input_grad
        parts = gradient.reshape(*x.shape[:2], -1)
        of_low = parts @ rising.mT
        return (
            gradient if for_output else None,
            (of_low @ down).view(*gradient.shape[:-1], -1) if for_x else None,
            of_low.mT @ x,
            (low.mT @ parts).mT,
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
