"""The tensors that a run trains, as one vector: what is sent, clipped, noised and averaged.

A model's other tensors keep their base values and are never sent.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor
from torch.nn import Parameter

from evaluator.errors import ErrorCode, refuse


class TrainableTensors:
    """The parameters whose names match one of `patterns` (as in a shell: `*.layer_norm.weight`), in model order.

    Parameters must be float32 and each be there once: a tied tensor has one name. The parameters that don't match
    are frozen, so that no gradient is computed for them.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A pattern matches nothing.
        ValueError: A parameter is there twice or is not float32.
    """

    def __init__(self, parameters: Mapping[str, Parameter], patterns: Sequence[str] = ("*",)) -> None:
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in parameters):
                raise refuse(
                    ErrorCode.CONFIGURATION,
                    where=f"trainable, pattern {pattern}",
                    expected=f"a pattern that matches a tensor such as {next(iter(parameters))}",
                    found="no match",
                )
        self.parameters = {
            name: parameter
            for name, parameter in parameters.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        }
        if len({parameter.data_ptr() for parameter in self.parameters.values()}) < len(self.parameters):
            raise ValueError("a tied tensor is named twice")
        for name, parameter in parameters.items():
            if parameter.dtype != torch.float32:
                raise ValueError(f"{name} is {parameter.dtype}, not float32")
            parameter.requires_grad_(name in self.parameters)

    @property
    def size(self) -> int:
        """Number of coordinates d of the vector."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    def read(self) -> Tensor:
        """The tensors' values as a new float32 vector (d,) on the CPU."""
        return torch.cat([parameter.detach().reshape(-1).cpu() for parameter in self.parameters.values()])

    @torch.no_grad()
    def write(self, vector: Tensor) -> None:
        """Set the tensors from a vector (d,)."""
        parts = torch.split(vector, [parameter.numel() for parameter in self.parameters.values()])
        for parameter, part in zip(self.parameters.values(), parts, strict=True):
            parameter.copy_(part.view_as(parameter))
