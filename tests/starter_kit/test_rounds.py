from collections.abc import Sequence
from itertools import pairwise

import torch

from evaluator.communication import LogEntry
from evaluator.contracts import SERVER
from starter_kit.engines.local import LocalEngine
from starter_kit.learning import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from starter_kit.rounds import run_rounds
from tests.starter_kit.toy import DIMENSION, Toy

LOCAL = LocalTraining(learning_rate=0.05, batch_size=4)


class Nobody(FedAvg):
    """A method whose rounds may stay without clients."""

    def choose_clients(self, clients: Sequence[int]) -> list[int]:
        return []


def test_every_message_is_counted_both_ways_from_the_first_download_on() -> None:
    toy = Toy()
    (first, second) = run_rounds(FedAvg(4, LOCAL), LocalEngine(toy.clients, toy.learner), toy.weights, 2)
    size_bytes = 4 * DIMENSION
    assert first.messages == [LogEntry(1, SERVER, c, size_bytes) for c in range(4)] + [
        LogEntry(1, c, SERVER, size_bytes) for c in range(4)
    ]
    assert {message.round for message in second.messages} == {2}


def test_bytes_are_totalled_by_direction() -> None:
    toy = Toy()
    (only,) = run_rounds(FedAvg(3, LOCAL), LocalEngine(toy.clients, toy.learner), toy.weights, 1)
    assert (only.bytes_down, only.bytes_up) == (3 * 4 * DIMENSION, 3 * 4 * DIMENSION)


def test_rounds_count_from_one_and_build_on_each_other() -> None:
    toy = Toy()
    rounds = list(run_rounds(FedAvg(4, LOCAL), LocalEngine(toy.clients, toy.learner), toy.weights, 30))
    assert rounds[0].start is toy.weights
    assert all(later.start is earlier.weights for earlier, later in pairwise(rounds))
    assert [finished.number for finished in rounds] == list(range(1, 31))
    assert toy.distance(rounds[-1].weights) < 0.2 * toy.distance(toy.weights)


def test_a_round_without_clients_happens_and_sends_nothing() -> None:
    toy = Toy()
    (only,) = run_rounds(Nobody(4, LOCAL), LocalEngine(toy.clients, toy.learner), toy.weights, 1)
    assert only.clients == []
    assert only.messages == []
    assert torch.equal(only.weights, toy.weights)


def test_the_weights_of_a_finished_round_stay_as_they_were() -> None:
    toy = Toy()
    rounds = run_rounds(FedAvg(4, LOCAL), LocalEngine(toy.clients, toy.learner), toy.weights, 2)
    first = next(rounds)
    kept = first.weights.clone()
    next(rounds)
    assert torch.equal(first.weights, kept)
    assert torch.equal(toy.weights, torch.zeros(DIMENSION))
