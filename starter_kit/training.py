"""A training run from settings to a run folder: data, base model, method, engine and recorder put together."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from evaluator import evaluator_version
from evaluator.accounting import pld
from evaluator.accounting.calibration import noise_multiplier
from evaluator.accounting.mechanisms import PoissonGaussian
from evaluator.checkpoints import sha256_of
from evaluator.contracts import ArtifactKind, ScoringResult, TrackRules
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.errors import ErrorCode, refuse
from evaluator.pipeline import Bench, score
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
RELEASE_VIEW: dict[NoisePlacement, Literal["aggregate", "per_client"]] = {
    NoisePlacement.SERVER: "aggregate",
    NoisePlacement.CLIENT_FULL: "per_client",
}


def train(
    settings: FedAvgSettings | ProviderDPSettings,
    *,
    data: Path,
    base: Path,
    out: Path,
    track: str,
    on_progress: Progress,
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
    run = None
    if isinstance(settings, ProviderDPSettings) and isinstance(method, ProviderDP):
        run = run_line(settings, method, tensors, base, track)
    with Recorder(out, snapshot(settings), run) as recorder:
        documents = Documents(
            model,
            tokenizer,
            dataset,
            max_input_tokens=settings.max_input_tokens,
            on_page=lambda done, total: on_progress("reading pages", done, total),
        )
        engine = LocalEngine(clients, Learner(tensors, documents.loss))
        on_progress("training, rounds", 0, settings.rounds)
        for finished in run_rounds(method, engine, tensors.read(), settings.rounds):
            if not finished.weights.isfinite().all():
                raise refuse(
                    ErrorCode.CHECKPOINT_NOT_FINITE, where=f"the model after round {finished.number}"
                )
            tensors.write(finished.weights)
            recorder.round(finished)
            on_progress("training, rounds", finished.number, settings.rounds)
        recorder.finish(model)


def evaluate(
    checkpoint: Path, *, base: Path, data: Path, split: str, on_progress: Callable[[int, int], None]
) -> ScoringResult:
    """ANLS and accuracy of a checkpoint on a split of a data folder, by the evaluator's own scoring step."""
    rules = TrackRules(reference="local", test_set="local", clients=1)
    bench = Bench({ArtifactKind.CHECKPOINT: checkpoint}, rules, reference=base, test_set=data, split=split)
    return score(bench, on_progress)


def build_method(settings: FedAvgSettings | ProviderDPSettings, clients: list[Client]) -> FedAvg | ProviderDP:
    """The method that the settings name; σ is computed where a target ε is given instead."""
    if isinstance(settings, FedAvgSettings):
        return FedAvg(settings.clients_per_round, settings.local)
    method = ProviderDP(
        providers=sum(len(client.providers) for client in clients),
        provider_rate=settings.provider_rate,
        clip_norm=settings.clip_norm,
        noise_multiplier=sigma_of(settings),
        local=settings.local,
        client_rate=settings.client_rate,
        placement=settings.placement,
        server_learning_rate=settings.server_learning_rate,
    )
    if settings.max_weight_noise is None:
        return method
    per_round = method.noise_in_sum(len(clients)) * method.server_learning_rate / method.expected_providers
    excess = per_round * math.sqrt(settings.rounds) / settings.max_weight_noise
    return replace(method, server_learning_rate=method.server_learning_rate / max(1.0, excess))


def sigma_of(settings: ProviderDPSettings) -> float:
    if settings.noise_multiplier is not None:
        return settings.noise_multiplier
    if settings.target_epsilon is None:
        raise ValueError("the settings' validator asks for one of the two")
    rate = settings.client_rate * settings.provider_rate
    return noise_multiplier(settings.target_epsilon, settings.delta, rate, settings.rounds)


def run_line(
    settings: ProviderDPSettings, method: ProviderDP, tensors: TrainableTensors, base: Path, track: str
) -> RunLine:
    """The first line of the training record; it claims the ε that the official accountant gives."""
    rate = settings.client_rate * settings.provider_rate
    epsilon = pld.epsilon([PoissonGaussian(rate, method.noise_multiplier, settings.rounds)], settings.delta)
    return RunLine(
        kit_version=evaluator_version(),
        track=track,
        method=settings.method,
        delta=settings.delta,
        sampling=Sampling(
            type="two_stage_poisson", client_rate=settings.client_rate, provider_rate=settings.provider_rate
        ),
        clip_norm=settings.clip_norm,
        noise=Noise(
            multiplier=method.noise_multiplier,
            placement=settings.placement.value,
            release_view=RELEASE_VIEW[settings.placement],
        ),
        normaliser=method.expected_providers,
        rounds=settings.rounds,
        base_sha256=sha256_of(base / WEIGHTS),
        trainable=[
            TrainableTensor(name=name, shape=list(parameter.shape))
            for name, parameter in tensors.parameters.items()
        ],
        claimed_epsilon=epsilon,
    )
