"""How the shipped files of the tiny VT5 were made, written down beside them."""

import platform

import torch
from pydantic import BaseModel, ConfigDict

from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.weights.tiny_vt5 import FOLDER, ORIGIN, digests
from tests.studies.tiny_vt5.pretraining import PretrainingSettings, pretrain


class Origin(BaseModel):
    """How the shipped files were made, and what they are.

    Attributes:
        accuracy: On fresh public cards; see `pretraining.exam_accuracy`.
        machine: What torch's arithmetic depends on, beside its version.
        sha256: Of each file of the reference folder, by its name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: PretrainingSettings
    accuracy: float
    torch_version: str
    machine: str
    sha256: dict[str, str]


def read_origin() -> Origin:
    return Origin.model_validate_json(ORIGIN.read_bytes())


def make_again(settings: PretrainingSettings, on_progress: OnProgress = ignore_progress) -> Origin:
    """Pre-train the model, and put its files and their origin in the place of the shipped ones."""
    accuracy = pretrain(FOLDER, settings, on_progress)
    capability = torch.backends.cpu.get_cpu_capability()
    origin = Origin(
        settings=settings,
        accuracy=accuracy,
        torch_version=torch.__version__,
        machine=f"{platform.machine()}, {capability}, {torch.get_num_threads()} threads",
        sha256=digests(),
    )
    ORIGIN.write_text(origin.model_dump_json(indent=1) + "\n")
    return origin
