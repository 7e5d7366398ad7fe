"""The tensors that a run trains, as one vector: what is sent, clipped, noised and averaged.

A model's other tensors keep their base values and are never sent.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.compression.lora import matching


class TrainableTensors:
    """The parameters whose names match one of `patterns` and none of `frozen` (as in a shell: `*.layer_norm.weight`).

    They are in the order of their names, as a training record requires. Each must be float32 and occur once: a tied
    tensor has one name. The parameters that aren't chosen are frozen, so that no gradient is computed for them.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A pattern matches nothing, or nothing is left to train.
        ValueError: A parameter occurs twice or is not float32.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        patterns: Sequence[str] = ("*",),
        frozen: Sequence[str] = (),
    ) -> None:
        left_out = matching(parameters, frozen, "frozen", "tensor")
        chosen = [
            name for name in matching(parameters, patterns, "trainable", "tensor") if name not in left_out
        ]
        self.parameters = {name: parameters[name] for name in sorted(chosen)}
        if not self.parameters:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="trainable",
                expected=f"a pattern that matches a tensor such as {next(iter(parameters))}",
                found="no match",
            )
        if len({parameter.data_ptr() for parameter in self.parameters.values()}) < len(self.parameters):
            raise ValueError("a tied tensor is named twice")
        for name, parameter in parameters.items():
            if parameter.dtype != torch.float32:
                raise ValueError(f"{name} is {parameter.dtype}, not float32")
            parameter.requires_grad_(name in self.parameters)

    @property
    def size(self) -> int:
        """The number of coordinates d of the vector."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    @property
    def cuda_devices(self) -> list[torch.device]:
        """The GPUs that the tensors are on."""
        return list({p.device for p in self.parameters.values() if p.device.type == "cuda"})

    def read(self, device: torch.device | str = "cpu") -> Tensor:
        """Return the tensors' values as a new float32 vector (d,) on `device`."""
        return torch.cat(
            [parameter.detach().reshape(-1).to(device) for parameter in self.parameters.values()]
        )

    @torch.no_grad()
    def write(self, vector: Tensor) -> None:
        """Set the tensors from a vector (d,)."""
        parts = torch.split(vector, [parameter.numel() for parameter in self.parameters.values()])
        for parameter, part in zip(self.parameters.values(), parts, strict=True):
            parameter.copy_(part.view_as(parameter))

    def drop_gradients(self) -> None:
        """Remove the tensors' gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def take_gradient(self) -> Tensor:
        """Return the gradient (d,) that a backward pass left, float32 on the CPU, and remove it from the tensors."""
        parts = []
        for parameter in self.parameters.values():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parts.append(gradient.detach().reshape(-1).cpu())
            parameter.grad = None
        return torch.cat(parts)
