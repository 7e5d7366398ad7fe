"""Tests of my_method on a federation that can be computed by hand. To run them: python test_my_method.py"""

from pathlib import Path

import torch

from evaluator.errors import ProblemError
from starter_kit.federation.rounds import Round
from starter_kit.scaffolding.testing import run_tests
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings

CONFIG = str(Path(__file__).with_name("my_method.yaml"))


def rounds(toy: Toy, count: int, *changes: str) -> list[Round]:
    """Run a number of rounds with the settings of the config, some of them changed."""
    settings = load_settings(CONFIG, ["local.learning_rate=0.02", *changes])
    return toy.run(settings.plan(toy.clients).method, count)


def test_a_round_is_what_the_equations_say() -> None:
    toy = Toy()
    first, second = rounds(toy, 2, "momentum=0.5", "server_learning_rate=2.0")
    mean, next_mean = (r.aggregate.total / len(r.clients) for r in (first, second))
    velocity = mean
    assert torch.allclose(first.weights, toy.weights + 2.0 * velocity)
    velocity = 0.5 * velocity + next_mean
    assert torch.allclose(second.weights, first.weights + 2.0 * velocity)


def test_it_learns() -> None:
    toy = Toy()
    *_, last = rounds(toy, 20)
    assert toy.distance(last.weights) < 0.2 * toy.distance(toy.weights)


def test_the_same_seed_gives_the_same_run() -> None:
    *_, one = rounds(Toy(), 5)
    *_, other = rounds(Toy(), 5)
    assert torch.equal(one.weights, other.weights)


def test_more_clients_than_there_are_can_not_take_part() -> None:
    try:
        rounds(Toy(clients=4), 1, "clients_per_round=5")
    except ProblemError:
        return
    raise AssertionError("five of four clients took part")


if __name__ == "__main__":
    run_tests(globals())
