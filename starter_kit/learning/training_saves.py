"""Saving a long local training while it runs, so that a later process resumes it and reaches the same result.

Only where nothing is private: what is saved depends on the examples, without a bound and without noise.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from starter_kit.learning.party_state import State
from starter_kit.learning.tensors import TrainableTensors


class TrainingSaves(Protocol):
    """Where the training that runs is saved."""

    @property
    def every(self) -> int:
        """Steps between two saves."""

    def load(self, training: str) -> Mapping[str, Any] | None:
        """Return what was saved last, if it was of this training."""

    def save(self, training: str, content: Mapping[str, Any]) -> None:
        """Replace what was saved by this: tensors, numbers and texts, in lists and dictionaries."""


def training_key(weights: Tensor, examples: Sequence[int], settings: str, stream: int) -> str:
    """Return a hash of all that a local training depends on, without what a client keeps: see `Learner.train`."""
    digest = hashlib.sha256(f"{stream}\n{settings}\n{list(examples)}\n".encode())
    digest.update(weights.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


@dataclass
class SavedTraining:
    """The state of a local training after some of its steps, and where it is saved.

    Attributes:
        key: Of the training, from `training_key`.
        tensors: At their values before the first step, until `restore`.
        optimizer: That of the training; `state_dict` has all that its later steps depend on.
        of_hooks: What the client keeps of hooks.
        losses: The losses of the steps so far.
    """

    saves: TrainingSaves
    key: str
    tensors: TrainableTensors
    optimizer: torch.optim.Optimizer
    of_hooks: State
    losses: list[Tensor]

    def restore(self) -> int:
        """Set everything to what was saved last of this training, and return how many steps were done by then."""
        content = self.saves.load(self.key)
        if content is None:
            return 0
        self.tensors.write(content["weights"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.of_hooks.clear()
        self.of_hooks.update(content["hooks"])
        self.losses[:] = content["losses"].to(content["device"]).unbind()
        torch.set_rng_state(content["generators"][0])
        for device, state in zip(self.tensors.cuda_devices, content["generators"][1:], strict=True):
            torch.cuda.set_rng_state(state, device)
        return len(self.losses)

    def after_step(self) -> None:
        """Save the training where it is time to."""
        if len(self.losses) % self.saves.every:
            return
        losses = torch.stack(self.losses)
        content = {
            "weights": self.tensors.read(),
            "optimizer": self.optimizer.state_dict(),
            "hooks": dict(self.of_hooks),
            "losses": losses.cpu(),
            "device": str(losses.device),
            "generators": [
                torch.get_rng_state(),
                *(torch.cuda.get_rng_state(device) for device in self.tensors.cuda_devices),
            ],
        }
        self.saves.save(self.key, content)
