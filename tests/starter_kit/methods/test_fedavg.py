import torch

from starter_kit.learning import LocalTraining
from starter_kit.methods.fedavg import FedAvg

LOCAL = LocalTraining(learning_rate=0.1)


def test_the_server_takes_the_plain_mean_of_the_updates() -> None:
    weights = torch.ones(3)
    messages = iter([torch.tensor([1.0, 0, 0]), torch.tensor([3.0, 2, 0])])
    aggregate = FedAvg(2, LOCAL).aggregate(weights, messages)
    assert torch.equal(aggregate.total, torch.tensor([4.0, 2, 0]))
    assert torch.equal(aggregate.weights, torch.tensor([3.0, 2, 1]))


def test_k_different_clients_are_drawn_and_all_clients_get_their_turn() -> None:
    method = FedAvg(2, LOCAL)
    draws = [method.choose_clients(range(10)) for _ in range(300)]
    assert all(len(set(draw)) == 2 for draw in draws)
    assert set().union(*draws) == set(range(10))


def test_more_clients_than_there_are_means_all_of_them() -> None:
    assert FedAvg(5, LOCAL).choose_clients([0, 1, 2]) == [0, 1, 2]
