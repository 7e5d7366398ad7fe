"""Tests of my_plugin on a federation that can be computed by hand. To run them: python test_my_plugin.py"""

from pathlib import Path

import torch

from starter_kit.federation.rounds import Round
from starter_kit.scaffolding.testing import run_tests
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings

CONFIG = str(Path(__file__).with_name("my_plugin.yaml"))


def rounds(toy: Toy, count: int, *changes: str) -> list[Round]:
    """Run a number of rounds with the settings of the config, some of them changed."""
    return toy.run_settings(load_settings(CONFIG, ["local.learning_rate=0.02", *changes]), count)


def test_a_round_is_what_the_equations_say() -> None:
    toy = Toy()
    first, second = rounds(toy, 2, "server_optimizer={type: my_plugin.py, learning_rate: 2.0, momentum: 0.5}")
    mean, next_mean = (r.aggregate.total / len(r.clients) for r in (first, second))
    velocity = mean
    assert torch.allclose(first.weights, toy.weights + 2.0 * (mean + 0.5 * velocity))
    velocity = 0.5 * velocity + next_mean
    assert torch.allclose(second.weights, first.weights + 2.0 * (next_mean + 0.5 * velocity))


def test_it_learns() -> None:
    toy = Toy()
    *_, last = rounds(toy, 20)
    assert toy.distance(last.weights) < 0.2 * toy.distance(toy.weights)


def test_the_same_seed_gives_the_same_run() -> None:
    *_, one = rounds(Toy(), 5)
    *_, other = rounds(Toy(), 5)
    assert torch.equal(one.weights, other.weights)


if __name__ == "__main__":
    run_tests(globals())
