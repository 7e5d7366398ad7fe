"""Tests of my_plugin on one parameter and on a small federation. To run them: python test_my_plugin.py"""

from pathlib import Path

import torch
from torch.nn import Parameter

from starter_kit.learning.local_training import make_optimizer
from starter_kit.scaffolding.testing import run_tests
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings

CONFIG = str(Path(__file__).with_name("my_plugin.yaml"))


def settings(*changes: str) -> LocalTrainingSettings:
    """Return the settings of the config, some of them changed."""
    loaded = load_settings(CONFIG, ["local.learning_rate=0.1", *changes])
    assert isinstance(loaded, LocalTrainingSettings)
    return loaded


def after_a_step(gradient: torch.Tensor) -> torch.Tensor:
    """Return where a step from zero with this gradient leads."""
    parameter = Parameter(torch.zeros(2))
    parameter.grad = gradient.clone()
    make_optimizer([parameter], settings().local).step()
    return parameter.detach()


def test_a_step_is_what_the_equation_says() -> None:
    # The learning rate is 0.1, the largest norm 1.
    assert torch.allclose(after_a_step(torch.tensor([0.3, 0.4])), torch.tensor([-0.03, -0.04]))
    assert torch.allclose(after_a_step(torch.tensor([3.0, 4.0])), torch.tensor([-0.06, -0.08]))


def test_it_learns() -> None:
    toy = Toy()
    *_, last = toy.run_settings(settings(), 20)
    assert toy.distance(last.weights) < 0.2 * toy.distance(toy.weights)


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = (Toy().run_settings(settings(), 5)[-1].weights for _ in range(2))
    assert torch.equal(one, other)


if __name__ == "__main__":
    run_tests(globals())
