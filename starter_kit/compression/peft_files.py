"""Low-rank adapters as the library PEFT stores them: `adapter_model.safetensors` and `adapter_config.json`.

PEFT names the tensors of an adapter `base_model.model.<layer>.lora_A.weight` and `...lora_B.weight`. Where whole layers
are trained beside adapters, it stores all of their tensors under their own names and lists the layers as
`modules_to_save`. Its file says nothing about the base weights but a name.

Only what is a sum of the base weights and products B·A can be read: DoRA, other kinds of adapters, and tensors that
PEFT stores for anything else are rejected.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from evaluator.docvqa.dataset import first_line
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.untrusted_text import decode
from evaluator.parametrizations.lora import LORA
from evaluator.parametrizations.parametrization import added
from starter_kit.compression.lora import LoRA

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
PREFIX = "base_model.model."
DOWN, UP = (part.suffix for part in LORA.parts)


class AdapterConfig(BaseModel):
    """What is read of `adapter_config.json`: what decides the product, and what would make it another one."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    peft_type: Literal["LORA"]
    r: int = Field(ge=1)
    lora_alpha: float
    use_rslora: bool = False
    alpha_pattern: dict[str, float] = {}
    use_dora: Literal[False] = False
    fan_in_fan_out: Literal[False] = False
    lora_bias: Literal[False] = False
    bias: Literal["none"] = "none"
    layer_replication: None = None

    def scale(self, layer: str, rank: int) -> float:
        """Return the factor on B·A in a layer whose adapter has this rank."""
        own = (
            alpha
            for pattern, alpha in self.alpha_pattern.items()
            if re.fullmatch(rf"(.*\.)?({pattern})", layer)
        )
        return next(own, self.lora_alpha) / (rank**0.5 if self.use_rslora else rank)


@dataclass(frozen=True)
class StoredAdapter:
    """An adapter as its files have it.

    Attributes:
        pairs: For each layer, A (rank, in) and B (out, rank).
        whole: The tensors of layers that are stored in full, by their names in the model.
    """

    config: AdapterConfig
    pairs: Mapping[str, tuple[Tensor, Tensor]]
    whole: Mapping[str, Tensor]


def write_adapter(folder: Path, lora: LoRA, tensors: Mapping[str, Tensor], *, base: str) -> None:
    """Write the two files into `folder`.

    Args:
        tensors: The adapters, `<layer>.lora_A.weight` and `<layer>.lora_B.weight`, and all tensors of the layers that
            are trained in full.
        base: What the file says about the base weights.
    """
    whole = sorted({name.rpartition(".")[0] for name in tensors if not name.endswith((DOWN, UP))})
    values = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "bias": "none",
        "fan_in_fan_out": False,
        "target_modules": [name.removesuffix(DOWN) for name in tensors if name.endswith(DOWN)],
        "modules_to_save": whole or None,
        **lora.parametrization.peft,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {PREFIX + name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        folder / ADAPTER_WEIGHTS,
        metadata={"format": "pt"},
    )
    (folder / ADAPTER_CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def read_adapter(folder: Path) -> StoredAdapter:
    """Read the two files in `folder`.

    Raises:
        ProblemError: (`E_CHECKPOINT_FORMAT`) One of them is missing or broken, or has what can't be added to weights.
    """
    config = _read_config(folder / ADAPTER_CONFIG)
    path = folder / ADAPTER_WEIGHTS
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, "a safetensors file, as `save_pretrained` writes it", error) from error
    tensors = {name.removeprefix(PREFIX): tensor.float() for name, tensor in stored.items()}
    layers = [name.removesuffix(DOWN) for name in tensors if name.endswith(DOWN)]
    pairs = {layer: _pair(tensors, layer, path) for layer in layers}
    whole = {name: tensor for name, tensor in tensors.items() if not name.endswith((DOWN, UP))}
    if strange := next((name for name in whole if ".lora_" in name), None):
        raise _unreadable(path, "adapters of linear layers, and layers in full", strange)
    return StoredAdapter(config, pairs, whole)


def is_adapter(folder: Path) -> bool:
    """Return whether a folder has an adapter rather than a checkpoint."""
    return (folder / ADAPTER_CONFIG).is_file() and (folder / ADAPTER_WEIGHTS).is_file()


@torch.no_grad()
def merged(adapter: StoredAdapter, base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of the base weights with the adapter in them.

    An adapter of the language model alone names its layers without `language_backbone.`; these are found, too.

    Raises:
        ProblemError: (`E_CHECKPOINT_SHAPE`, `E_CHECKPOINT_EXTRA_TENSOR`) It doesn't fit the base weights.
    """
    result = dict(base)
    for layer, (down, up) in adapter.pairs.items():
        name = _name_in(base, f"{layer}.weight")
        _check_shape(name, (len(up), down.shape[1]), base[name])
        factors = (factor.double().numpy() for factor in (down, up))
        product = added(adapter.config.scale(layer, len(down)), *factors)
        result[name] = (base[name].double() + torch.from_numpy(product)).float()
    for given, tensor in adapter.whole.items():
        name = _name_in(base, given)
        _check_shape(name, tuple(tensor.shape), base[name])
        result[name] = tensor
    return result


def _read_config(path: Path) -> AdapterConfig:
    try:
        return AdapterConfig.model_validate_json(decode(path.read_bytes()))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise _unreadable(
            path,
            "the settings of LoRA adapters, without DoRA, trained biases or copied layers",
            first_line(error),
        ) from error


def _pair(tensors: Mapping[str, Tensor], layer: str, path: Path) -> tuple[Tensor, Tensor]:
    down, up = tensors[layer + DOWN], tensors.get(layer + UP)
    if up is None or down.dim() != 2 or up.dim() != 2 or up.shape[1] != len(down):
        found = "nothing" if up is None else f"{list(down.shape)} and {list(up.shape)}"
        raise _unreadable(path, f"A (rank, in) and B (out, rank) of {layer}", found)
    return down, up


def _name_in(base: Mapping[str, Tensor], name: str) -> str:
    for candidate in (name, f"language_backbone.{name}"):
        if candidate in base:
            return candidate
    raise ProblemError.of(
        ErrorCode.CHECKPOINT_EXTRA_TENSOR,
        where=f"{ADAPTER_WEIGHTS}, {name}",
        expected="a layer of the base weights",
        found="none of that name",
        next_step="Name the base weights that the adapter was trained on.",
    )


def _check_shape(name: str, found: tuple[int, ...], base: Tensor) -> None:
    if found != tuple(base.shape):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_SHAPE,
            where=f"{ADAPTER_WEIGHTS}, {name}",
            expected=list(base.shape),
            found=list(found),
            next_step="Name the base weights that the adapter was trained on.",
        )


def _unreadable(path: Path, expected: str, found: object) -> ProblemError:
    return ProblemError.of(
        ErrorCode.CHECKPOINT_FORMAT,
        message="The adapter can't be read.",
        where=str(path),
        expected=expected,
        found=found,
        next_step="Save it with PEFT's `save_pretrained`, as safetensors, or merge it there.",
    )
