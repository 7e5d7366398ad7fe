"""The toy federation that a participant's tests run on."""

import itertools

import pytest
import torch

from starter_kit.learning.local_training import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from starter_kit.scaffolding.toy import DIMENSION, Toy

LOCAL = LocalTraining(learning_rate=0.05, epochs=4, batch_size=4)


def test_every_provider_has_two_points_of_its_own() -> None:
    toy = Toy(clients=3, providers=4)
    points = [point for client in toy.clients for point in client.examples]
    assert sorted(points) == list(range(3 * 4 * 2))
    assert all(len(provider) == 2 for client in toy.clients for provider in client.providers.values())
    names = [name for client in toy.clients for name in client.providers]
    assert len(set(names)) == 12


def test_the_truth_fits_every_point_and_nothing_else_does() -> None:
    toy = Toy()
    toy.learner.tensors.write(toy.truth)
    assert float(toy.loss(range(40)).detach()) == pytest.approx(0, abs=1e-12)
    toy.learner.tensors.write(toy.truth + 0.1)
    assert float(toy.loss(range(40)).detach()) > 0.01


def test_rounds_continue_from_one_another_and_lead_to_the_truth() -> None:
    toy = Toy()
    rounds = toy.run(FedAvg(2, LOCAL), 15)
    assert [finished.number for finished in rounds] == list(range(1, 16))
    assert torch.equal(rounds[0].start, torch.zeros(DIMENSION))
    assert all(torch.equal(after.start, before.weights) for before, after in itertools.pairwise(rounds))
    assert toy.distance(rounds[-1].weights) < 0.1 * toy.distance(toy.weights)


def test_the_seed_decides() -> None:
    runs = [Toy().run(FedAvg(1, LOCAL), 4, seed=seed)[-1].weights for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
