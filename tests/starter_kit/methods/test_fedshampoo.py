"""FedShampoo: what a whole round makes of known gradients, and that a client's preconditioners stay with it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step
from starter_kit.federation.client_state import ClientState, LocalState
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.rounds import Client, Engine, Server
from starter_kit.learning.local_training import Learner, LocalTraining, ShampooSettings
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.methods.fedavg import FedAvg
from starter_kit.methods.fedshampoo import Settings
from starter_kit.runs.resuming import ResumeFolder, TrainingState
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.toy import run_rounds, server
from tests.starter_kit.training_runs import trained

RIDGE = 6.0
LOCAL = LocalTraining(
    optimizer="shampoo",
    epochs=2,
    learning_rate=0.1,
    shampoo=ShampooSettings(element_clip=0.7, statistics_every=1, roots_every=1, ridge=RIDGE),
)
EMBEDDING = "language_backbone.shared.weight"


class TwoClients:
    """Each of two clients has one example, whose loss has the same gradient at any weights (2, 2): diag(3, 0) for the
    one and diag(0, -1) for the other. The embedding is frozen."""

    def __init__(self) -> None:
        layer, embedding = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.ones(5, 2))
        gradients = torch.tensor([[[3.0, 0], [0, 0]], [[0, 0], [0, -1.0]]])
        tensors = TrainableTensors({"embedding": embedding, "layer": layer}, frozen=["embedding"])
        self.learner = Learner(tensors, lambda examples: (gradients[examples[0]] * layer).sum())
        self.clients = [Client(0, {"a": [0]}), Client(1, {"b": [1]})]
        self.start = tensors.read()

    def server(self) -> Server:
        return server(FedAvg(2, LOCAL), self.clients, self.learner, self.start)


def step(gradient: float, number: int) -> float:
    """The only element of a client's step that isn't 0, at its step of this number: all statistics are diagonal."""
    statistics = 1 + number * gradient**2
    root = (statistics + RIDGE) ** -0.25
    return max(-0.7, min(0.7, root * gradient * root))


def engine_of(whole: Server) -> LocalEngine:
    assert isinstance(whole.engine, LocalEngine)
    return whole.engine


def test_a_round_averages_clipped_steps_preconditioned_from_both_sides() -> None:
    whole = TwoClients().server()
    first, second = run_rounds(whole, torch.zeros(4), [1, 2])
    # 3/√16 = 0.75 is clipped to 0.7, 3/√25 is 0.6; -1/√8 and -1/√9 are not clipped.
    by_hand = torch.tensor([-0.1 * (0.7 + 0.6), 0, 0, 0.1 * (1 / math.sqrt(8) + 1 / 3)]) / 2
    torch.testing.assert_close(first.weights, by_hand)
    # The second round continues with what the clients gathered in the first: 3/√34 and 3/√43, -1/√10 and -1/√11.
    further = torch.tensor([-(step(3, 3) + step(3, 4)), 0, 0, -(step(-1, 3) + step(-1, 4))]) * 0.1 / 2
    assert step(3, 3) == pytest.approx(3 / math.sqrt(34))
    torch.testing.assert_close(second.weights - first.weights, further)


def test_clients_keep_preconditioners_of_their_own_gradients() -> None:
    whole = TwoClients().server()
    list(run_rounds(whole, torch.zeros(4), [1, 2]))
    one, other = (engine_of(whole).states[client].tensors for client in (0, 1))
    assert one.keys() == {"0.step", "0.left", "0.right", "0.left_root", "0.right_root"}
    torch.testing.assert_close(one["0.left"], torch.tensor([[1 + 4 * 9.0, 0], [0, 1]]))
    torch.testing.assert_close(other["0.left"], torch.tensor([[1.0, 0], [0, 1 + 4 * 1.0]]))


def test_no_message_carries_anything_but_the_model_and_its_change() -> None:
    toy = TwoClients()
    whole = toy.server()
    engine = engine_of(whole)
    sent: list[bytes] = []

    class Listening:
        clients = engine.clients
        unsent: list[int] = []

        def ask(self, requests):
            sent.extend(request.payload for request in requests)
            for reply in engine.ask(requests):
                sent.append(reply.payload)
                yield reply

    listened = replace(whole, engine=cast(Engine, Listening()))
    first = listened.round(1, toy.start)
    model, _, *changes = [torch.frombuffer(bytearray(payload), dtype=torch.float32) for payload in sent]
    assert torch.equal(model, toy.start)
    assert torch.equal(sum(changes, torch.zeros(4)) / 2, first.weights)
    assert {len(payload) for payload in sent} == {4 * 4}
    kept = [tensor for state in engine.states.values() for tensor in state.tensors.values()]
    assert not any(tensor.numpy().tobytes() in payload for tensor in kept for payload in sent if tensor.dim())


def test_a_run_that_is_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    toy = TwoClients()
    *_, last = run_rounds(toy.server(), toy.start, range(1, 5))

    broken = toy.server()
    *_, second = run_rounds(broken, toy.start, [1, 2])
    folder = ResumeFolder(tmp_path)
    folder.create()
    folder.save(TrainingState(2, second.weights, broken.state, engine_of(broken).states))
    state = folder.load()
    assert state is not None

    def resumed(kept: dict[int, ClientState]) -> Tensor:
        again = toy.server()
        engine_of(again).restore(kept)
        *_, end = run_rounds(again, state.weights, [3, 4])
        return end.weights

    assert torch.equal(resumed(dict(state.clients)), last.weights)
    assert not torch.equal(resumed({0: LocalState(), 1: LocalState()}), last.weights)


def test_another_optimizer_is_rejected_by_name() -> None:
    with pytest.raises(ProblemError) as caught:
        load_settings("fedshampoo", ["local.optimizer=adamw"])
    assert "shampoo, not adamw" in caught.value.problem.expected
    assert isinstance(load_settings("fedshampoo"), Settings)


def test_a_run_sends_no_embedding_and_ends_alike_whether_or_not_it_was_interrupted(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=4", "local.shampoo.statistics_every=1", "local.shampoo.roots_every=1"]
    whole = trained("fedshampoo", base, data, tmp_path / "whole", changes)
    with pytest.raises(CutError):
        trained("fedshampoo", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    resumed = trained("fedshampoo", base, data, tmp_path / "run", changes, resume=True)
    for kind in (ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG):
        assert resumed.file(kind).read_bytes() == whole.file(kind).read_bytes()

    rules = TrackRules(reference="local", test_set="local", clients=3)
    inputs = StepInputs(whole.files(), rules, reference=base)
    for kind_of_check in (Step.VALIDATE, Step.COMMUNICATION):
        run_step(kind_of_check, inputs, lambda done, total: None)
    before, after = (
        read_safetensors(folder / "model.safetensors")
        for folder in (base, whole.file(ArtifactKind.CHECKPOINT).parent)
    )
    backbone = {name: tensor for name, tensor in before.items() if name.startswith("language_backbone.")}
    sent = sum(tensor.numel() for name, tensor in backbone.items() if name != EMBEDDING)
    log = whole.file(ArtifactKind.COMMUNICATION_LOG).read_text().splitlines()[1:]
    assert {line.split(",")[-1] for line in log} == {str(4 * sent)}
    assert torch.equal(before[EMBEDDING], after[EMBEDDING])
    assert sum(not torch.equal(before[name], after[name]) for name in before) > 10
