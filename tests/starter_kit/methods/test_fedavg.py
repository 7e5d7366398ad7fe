import pytest
import torch

from evaluator.errors import ProblemError
from starter_kit.federation.rounds import Message
from starter_kit.learning.local_training import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.toy import STREAM, Toy, aggregated

LOCAL = LocalTraining(learning_rate=0.1)


def test_the_server_takes_the_plain_mean_of_the_updates() -> None:
    weights = torch.ones(3)
    messages = iter([Message(0, torch.tensor([1.0, 0, 0])), Message(3, torch.tensor([3.0, 2, 0]))])
    aggregate = aggregated(FedAvg(2, LOCAL), weights, messages)
    assert torch.equal(aggregate.total, torch.tensor([4.0, 2, 0]))
    assert torch.equal(aggregate.weights, torch.tensor([3.0, 2, 1]))


def test_k_different_clients_are_drawn_and_all_clients_get_their_turn() -> None:
    method = FedAvg(2, LOCAL)
    draws = [method.choose_clients(range(10), STREAM.at(number)) for number in range(300)]
    assert all(len(set(draw)) == 2 for draw in draws)
    assert set().union(*draws) == set(range(10))


def test_more_clients_than_there_are_is_rejected_with_how_many_there_are() -> None:
    toy = Toy(clients=3)
    settings = load_settings("fedavg", ["clients_per_round=4"])
    with pytest.raises(ProblemError) as caught:
        settings.plan(toy.clients)
    assert caught.value.problem.where == "clients_per_round"
    assert "1 to 3" in caught.value.problem.expected
