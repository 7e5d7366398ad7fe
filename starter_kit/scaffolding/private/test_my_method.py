"""Tests of my_method on a federation that can be computed by hand. To run them: python test_my_method.py"""

from pathlib import Path

import torch

from starter_kit.federation.rounds import Round
from starter_kit.scaffolding.testing import run_tests
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings

CONFIG = str(Path(__file__).with_name("my_method.yaml"))
NO_NOISE = ["target_epsilon=null", "noise_multiplier=1e-9"]


def rounds(toy: Toy, count: int, *changes: str) -> list[Round]:
    """Run a number of rounds with the settings of the config, some of them changed."""
    settings = load_settings(CONFIG, [f"rounds={count}", *changes])
    return toy.run(settings.plan(toy.clients).method, count)


def test_a_round_is_what_the_equations_say() -> None:
    toy = Toy(clients=4, providers=5)
    first, second = rounds(
        toy, 2, *NO_NOISE, "sampling.provider_rate=1", "momentum=0.5", "server_learning_rate=2.0"
    )
    mean, next_mean = (r.aggregate.total / 20 for r in (first, second))
    velocity = mean
    assert torch.allclose(first.weights, toy.weights + 2.0 * velocity)
    velocity = 0.5 * velocity + next_mean
    assert torch.allclose(second.weights, first.weights + 2.0 * velocity)


def test_no_provider_moves_the_sum_by_more_than_the_clip_norm() -> None:
    toy = Toy(clients=1, providers=2)
    changes = (*NO_NOISE, "sampling.provider_rate=1", "clip_norm=0.01", "local.learning_rate=10")
    (both,) = rounds(toy, 1, *changes)
    del toy.clients[0].providers["provider 1"]
    (one,) = rounds(toy, 1, *changes)
    moved = float((both.aggregate.total - one.aggregate.total).norm())
    assert 0.009 < moved <= 0.01 * (1 + 1e-6)


def test_the_sum_has_the_requested_noise() -> None:
    toy = Toy()
    settings = ("target_epsilon=null", "noise_multiplier=100", "clip_norm=1", "sampling.provider_rate=1")
    # 400 numbers, with hardly any signal.
    noise = torch.cat([r.aggregate.total for r in rounds(toy, 50, *settings)])
    assert 75 < float(noise.std()) < 125


def test_the_guarantee_is_that_of_the_target() -> None:
    toy = Toy()
    plan = load_settings(CONFIG).plan(toy.clients)
    assert plan.guarantee is not None
    assert plan.guarantee.unit == "provider"
    assert 7.9 < plan.guarantee.epsilon(plan.rounds) <= 8


if __name__ == "__main__":
    run_tests(globals())
