"""Tests of my_plugin on one gradient and on a small federation. To run them: python test_my_plugin.py"""

from pathlib import Path

import torch
from torch.nn import Parameter

from starter_kit.learning.plugins import GradientStep
from starter_kit.scaffolding.testing import run_tests
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings

CONFIG = str(Path(__file__).with_name("my_plugin.yaml"))


def settings(*changes: str) -> LocalTrainingSettings:
    """Return the settings of the config, some of them changed."""
    loaded = load_settings(CONFIG, ["local.learning_rate=0.1", "local.optimizer=sgd", *changes])
    assert isinstance(loaded, LocalTrainingSettings)
    return loaded


def corrected(number: int, gradient: list[float]) -> list[float]:
    """Return what the hook makes of a gradient in the step of this number."""
    hook, parameter = settings().local.hook, Parameter(torch.zeros(len(gradient)))
    assert hook is not None
    parameter.grad = torch.tensor(gradient)
    hook.correct(GradientStep(number, [parameter], [torch.zeros(len(gradient))], 0.1, {}))
    return list(parameter.grad.tolist())


def test_a_step_is_what_the_text_says() -> None:
    assert corrected(1, [0.5, -1.5, 3.0]) == [0.5, -1.5, 2.0]
    assert corrected(2, [0.5, -1.5, 3.0]) == [0.5, -1.0, 1.0]


def test_it_learns() -> None:
    toy = Toy()
    *_, last = toy.run_settings(settings(), 20)
    assert toy.distance(last.weights) < 0.2 * toy.distance(toy.weights)


def test_training_reports_its_loss() -> None:
    assert all(finished.loss is not None for finished in Toy().run_settings(settings(), 2))


if __name__ == "__main__":
    run_tests(globals())
