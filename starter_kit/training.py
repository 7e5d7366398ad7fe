"""A training run from settings to a run folder: data, base model, method, engine and recorder put together."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evaluator import evaluator_version
from evaluator.checkpoints import sha256_of
from evaluator.contracts import ArtifactKind, ScoringResult, TrackRules
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.errors import ErrorCode, refuse
from evaluator.pipeline import Bench, Findings, score
from evaluator.records.lines import (
    Codec,
    GlobalPoisson,
    Noise,
    RunLine,
    ServerStep,
    TrainableTensor,
    TwoStagePoisson,
)
from starter_kit import budget
from starter_kit.configuration import FedAvgSettings, ProviderDPSettings, snapshot
from starter_kit.credentials import Credentials
from starter_kit.documents import Documents, clients_of
from starter_kit.engines.local import LocalEngine
from starter_kit.learning import Learner
from starter_kit.methods.fedavg import FedAvg
from starter_kit.methods.fl_provider_dp import ProviderDP
from starter_kit.provenance import code_sha256
from starter_kit.recording import Recorder
from starter_kit.rounds import Client, run_rounds
from starter_kit.tensors import TrainableTensors

Progress = Callable[[str, int, int], None]  # (what is done, done, total)


def train(
    settings: FedAvgSettings | ProviderDPSettings,
    *,
    data: Path,
    base: Path,
    out: Path,
    track: str,
    credentials: Callable[[], Credentials],
    on_progress: Progress,
) -> None:
    """Train from the weights in `base` on the training split of `data`, and write the run folder `out`.

    `track` is named in the training record. Progress is told by round and client, never by provider.

    Args:
        credentials: For the training record; asked for once, when a private run is about to begin its first round.

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
        run = run_line(settings, method, clients=len(clients), tensors=tensors, base=base, track=track)
    with Recorder(out, snapshot(settings)) as recorder:
        documents = Documents(
            model,
            tokenizer,
            dataset,
            max_input_tokens=settings.max_input_tokens,
            on_page=lambda done, total: on_progress("reading pages", done, total),
        )
        engine = LocalEngine(clients, Learner(tensors, documents.loss))
        if run:
            signed = credentials()
            providers = {client.id: len(client.providers) for client in clients}
            recorder.keep_record(
                run.model_copy(update={"run_token": signed.run_token}), signed.key, providers
            )
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
) -> Findings[ScoringResult]:
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
        noise_multiplier=budget.noise_multiplier(settings, len(clients)),
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


def run_line(
    settings: ProviderDPSettings,
    method: ProviderDP,
    *,
    clients: int,
    tensors: TrainableTensors,
    base: Path,
    track: str,
) -> RunLine:
    """The first line of the training record, but for its run token."""
    return RunLine(
        run_token=None,
        kit_version=evaluator_version(),
        code_sha256=code_sha256(snapshot(settings)),
        track=track,
        method=settings.method,
        delta=settings.delta,
        clients=clients,
        sampling=(
            GlobalPoisson(provider_rate=method.provider_rate)
            if method.client_rate == 1
            else TwoStagePoisson(client_rate=method.client_rate, provider_rate=method.provider_rate)
        ),
        clip_norm=method.clip_norm,
        noise=Noise(
            multiplier=method.noise_multiplier,
            placement=method.placement.value,
            release_view=budget.RELEASE_VIEW[method.placement],
        ),
        normaliser=method.expected_providers,
        server=ServerStep(rule="sum", learning_rate=method.server_learning_rate),
        codec=Codec(name="float32", bits_per_parameter=32.0),
        rounds=settings.rounds,
        base_sha256=sha256_of(base / WEIGHTS),
        trainable=[
            TrainableTensor(name=name, shape=list(parameter.shape))
            for name, parameter in tensors.parameters.items()
        ],
        tuning=settings.tuning,
        validation_on_private_data=settings.validation_on_private_data,
        claimed_epsilon=budget.epsilon(settings, clients, method.noise_multiplier),
    )
