"""FedAvg on pocket data with any engine, for comparing engines."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from evaluator.docvqa.weights import read_safetensors
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.training import OpenEngine, in_process, train
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import RunSettings
from starter_kit.site.credentials import Credentials
from tests.starter_kit.training_runs import FEW_STEPS, KEY

QUICK = [*FEW_STEPS, "trainable=['language_backbone.shared.weight']"]


def quick_settings(config: str = "fedavg", changes: Sequence[str] = ()) -> RunSettings:
    """Two rounds of one small step, on one tensor."""
    return load_settings(config, [*QUICK, *changes])


def run(
    settings: RunSettings,
    base: Path,
    data: Path,
    out: Path,
    open_engine: OpenEngine = in_process,
    *,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> RunFolder:
    """A finished run."""
    train(
        settings,
        data=data,
        base=base,
        out=out,
        track="track-2",
        credentials=lambda: Credentials(KEY, None),
        watcher=watcher or Watcher(),
        resume=resume,
        open_engine=open_engine,
    )
    return RunFolder(out)


def trained_tensor(folder: RunFolder) -> Tensor:
    """The one tensor that a quick run trains."""
    tensors = read_safetensors(folder.path / "model.safetensors")
    return torch.as_tensor(tensors["language_backbone.shared.weight"])
