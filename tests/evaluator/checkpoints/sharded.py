"""Sharded checkpoints to test with, laid out as Hugging Face libraries save them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

INDEX = "model.safetensors.index.json"


def save_shards(folder: Path, shards: Sequence[Mapping[str, torch.Tensor]]) -> Path:
    """Write `shards` and their index into `folder`; the index."""
    folder.mkdir(parents=True, exist_ok=True)
    weight_map: dict[str, str] = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        save_file(dict(tensors), folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    return write_index(folder, weight_map)


def write_index(folder: Path, weight_map: object) -> Path:
    index = folder / INDEX
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index


def split(tensors: Mapping[str, torch.Tensor], count: int) -> list[dict[str, torch.Tensor]]:
    """`tensors` dealt out to `count` shards."""
    names = list(tensors)
    return [{name: tensors[name] for name in names[start::count]} for start in range(count)]
