"""A training run from settings to a run folder: data, base model, method, engine and recorder put together."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluator import evaluator_version
from evaluator.accounting import pld
from evaluator.accounting.calibration import noise_multiplier
from evaluator.accounting.mechanisms import PoissonGaussian
from evaluator.checkpoints import sha256_of
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import predict
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import ORIGINAL_WEIGHTS, VT5, WEIGHTS
from evaluator.errors import ErrorCode, refuse
from evaluator.metrics import Scores, score
from evaluator.records import Noise, RunLine, Sampling, TrainableTensor
from starter_kit.configuration import FedAvgSettings, ProviderDPSettings, snapshot
from starter_kit.documents import Documents, clients_of
from starter_kit.engines.local import LocalEngine
from starter_kit.learning import Learner
from starter_kit.methods.fedavg import FedAvg
from starter_kit.methods.fl_provider_dp import NoisePlacement, ProviderDP
from starter_kit.recording import Recorder
from starter_kit.rounds import Client, run_rounds
from starter_kit.tensors import TrainableTensors

Progress = Callable[[str, int, int], None]  # (what is done, done, total)
RELEASE_VIEW = {NoisePlacement.SERVER: "aggregate", NoisePlacement.CLIENT_FULL: "per_client"}


def train(
    settings: FedAvgSettings | ProviderDPSettings,
    *,
    data: Path,
    base: Path,
    out: Path,
    track: str,
    on_progress: Progress = lambda what, done, total: None,
) -> None:
    """Train from the weights in `base` on the training split of `data`, and write the run folder `out`.

    `track` is named in the training record. Progress is told by round and client, never by provider.

    Raises:
        ProblemError: The data, the base, the settings or the output folder can't be used, or training diverged.
    """
    model, tokenizer = open_reference(base)
    model.to(settings.device)
    dataset = Dataset(data, "train")
    clients = clients_of(dataset)
    tensors = TrainableTensors(model.trainable_parameters(), settings.trainable)
    method = build_method(settings, clients)
    run = run_line(settings, method, tensors, base, track) if isinstance(settings, ProviderDPSettings) else None
    with Recorder(out, snapshot(settings), run) as recorder:
        documents = Documents(
            model,
            tokenizer,
            dataset,
            max_input_tokens=settings.max_input_tokens,
            on_page=lambda done, total: on_progress("reading pages", done, total),
        )
        ...
