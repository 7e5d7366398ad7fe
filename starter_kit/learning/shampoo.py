"""Shampoo, layer by layer, with element-wise clipping: the client's optimizer of FedShampoo.

Algorithm 1 of the PFL-DocVQA competition paper (Niwa et al., section 4.4 and appendix D.1), after Gupta, Koren and
Singer 2018 (arXiv:1802.09568). A layer's gradient is a matrix G (out, in). At its t-th step, t from 1,

    if 10 divides t:   L += G Gᵀ,  R += Gᵀ G              from L = I (out, out) and R = I (in, in)
    if 100 divides t:  A = (L + ρI)^(-1/4),  B = (R + ρI)^(-1/4)
    always:            W -= lr · clip(A G B, C)           each element to [-C, C]

Choices where the paper leaves them open:

- Before the hundredth step A and B are identities: clipped SGD.
- t continues from round to round, together with L, R, A and B, as exported and restored by the client. With a multiple
  of 100 steps per round, as in the paper, that is the paper's t; with shorter rounds the roots are still computed.
- L and R are sums, as the formula says, not the moving averages that its comment names.
- A vector (bias, layer norm) is a matrix of one column; a tensor of more dimensions is (first, all others).
- A side above `max_dimension`, such as a vocabulary, keeps its identity and takes no memory.

L and R only grow, so A and B shrink a step, most where gradients have been large. A layer takes 2 (out² + in²) numbers
of memory and, each time that roots are computed, a time of out³ + in³.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim.optimizer import ParamsT

from starter_kit.optimizers import UncompiledOptimizer


class Shampoo(UncompiledOptimizer):
    """Shampoo over `params`, float32 or float64.

    A parameter without a gradient is skipped, and its steps are not counted. Statistics that a gradient would make
    infinite or NaN stay unchanged, because a client would keep them forever; the weights still take the step.

    Args:
        lr: Learning rate η.
        element_clip, statistics_every, roots_every, ridge: See `ShampooSettings`, which checks their ranges.
        max_dimension: The longest side that is preconditioned.

    Raises:
        ValueError: A parameter has another dtype.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        element_clip: float,
        statistics_every: int = 10,
        roots_every: int = 100,
        ridge: float = 1e-4,
        max_dimension: int = 8192,
    ) -> None:
        self._max_dimension = max_dimension
        super().__init__(
            params,
            {
                "lr": lr,
                "element_clip": element_clip,
                "statistics_every": statistics_every,
                "roots_every": roots_every,
                "ridge": ridge,
            },
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            self.state[parameter].update(_first_state(parameter, self._max_dimension))

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take one step of every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    _step(parameter, parameter.grad, self.state[parameter], group)

    def export_state(self) -> dict[str, Tensor]:
        """Return copies, on the CPU, of everything except the weights that later steps depend on.

        A name consists of the parameter's number, in the order given, and the kind of state: `3.step` (), `3.left`
        (L, (out, out)), `3.right` (R, (in, in)), `3.left_root` (A, (out, out)), `3.right_root` (B, (in, in)).
        """
        return {name: tensor.detach().cpu().clone() for name, tensor in self._named_state().items()}

    def restore_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from what `export_state` returned: the next steps equal those of that optimizer to the bit.

        Raises:
            ValueError: The names or shapes are not those of this optimizer's parameters; nothing is changed then.
        """
        own = self._named_state()
        expected = {name: tensor.shape for name, tensor in own.items()}
        found = {name: tensor.shape for name, tensor in state.items()}
        if found != expected:
            wrong = sorted(
                name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
            )
            raise ValueError(f"the state of other parameters: {wrong[0]} does not fit")
        for name, tensor in own.items():
            tensor.copy_(state[name])

    def _named_state(self) -> dict[str, Tensor]:
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        return {
            f"{number}.{key}": tensor
            for number, parameter in enumerate(parameters)
            for key, tensor in self.state[parameter].items()
        }


def _first_state(parameter: Parameter, max_dimension: int) -> dict[str, Tensor]:
    if parameter.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"Shampoo trains float32 or float64 parameters, not {parameter.dtype}")
    state = {"step": torch.tensor(0)}
    for side, dimension in zip(("left", "right"), _matrix(parameter).shape, strict=True):
        if dimension <= max_dimension:
            identity = torch.eye(dimension, dtype=parameter.dtype, device=parameter.device)
            state |= {side: identity, f"{side}_root": identity.clone()}
    return state


def _step(parameter: Parameter, gradient: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
    direction = _matrix(gradient)
    state["step"] += 1
    step = int(state["step"])
    if step % group["statistics_every"] == 0:
        _gather(state, "left", direction)
        _gather(state, "right", direction.T)
    if step % group["roots_every"] == 0:
        _compute_roots(state, group["ridge"])
    if "left" in state:
        direction = state["left_root"] @ direction
    if "right" in state:
        direction = direction @ state["right_root"]
    clip = group["element_clip"]
    parameter.sub_(group["lr"] * direction.clamp(-clip, clip).view_as(parameter))


def _matrix(tensor: Tensor) -> Tensor:
    return tensor.flatten(1) if tensor.dim() > 1 else tensor.reshape(-1, 1)


def _gather(state: dict[str, Tensor], side: str, gradient: Tensor) -> None:
    if side in state:
        gathered = state[side] + gradient @ gradient.T
        if gathered.isfinite().all():
            state[side].copy_(gathered)


def _compute_roots(state: dict[str, Tensor], ridge: float) -> None:
    for side in ("left", "right"):
        if side in state:
            state[f"{side}_root"].copy_(_inverse_fourth_root(state[side], ridge))


def _inverse_fourth_root(statistics: Tensor, ridge: float) -> Tensor:
    """Return (S + ridge·I)^(-1/4) (n, n), in float64, for `statistics` S (n, n), which is I plus a sum of squares.

    No eigenvalue of such an S is below 1; one that rounding in float32 sums has pushed below counts as 1.
    """
    eigenvalues, eigenvectors = torch.linalg.eigh(statistics.double())
    root: Tensor = (eigenvectors * (eigenvalues.clamp_min(1) + ridge).pow(-0.25)) @ eigenvectors.T
    return root
