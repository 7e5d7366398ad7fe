"""Warm-up, schedules and clipped gradients, computed by hand; without them nothing changes."""

import math

import pytest
import torch
from torch import Tensor

from starter_kit.learning.local_training import LocalTraining, batches
from starter_kit.learning.pacing import learning_rate_factor, steps_of
from tests.starter_kit.quadratics import Quadratics, numbers
from tests.starter_kit.toy import STREAM

SGD = LocalTraining(learning_rate=0.5, optimizer="sgd", batch_size=1)


def factors(steps: int, **settings: object) -> list[float]:
    local = SGD.model_copy(update=settings)
    return [learning_rate_factor(step, steps, local) for step in range(steps)]


def test_a_schedule_falls_from_the_full_rate_and_never_reaches_zero() -> None:
    assert factors(4) == [1, 1, 1, 1]
    assert factors(4, schedule="linear") == [1, 0.75, 0.5, 0.25]
    assert factors(3, schedule="cosine") == pytest.approx([1, 0.75, 0.25])


def test_the_warm_up_rises_to_the_full_rate_before_the_schedule_begins() -> None:
    assert factors(4, warmup_steps=2) == [0.5, 1, 1, 1]
    assert factors(6, warmup_steps=2, schedule="linear") == [0.5, 1, 1, 0.75, 0.5, 0.25]
    assert factors(2, warmup_steps=5) == [0.2, 0.4]


@pytest.mark.parametrize(
    "local",
    [SGD, SGD.model_copy(update={"epochs": 3, "batch_size": 4}), SGD.model_copy(update={"max_steps": 2})],
)
def test_as_many_steps_are_planned_as_are_made(local: LocalTraining) -> None:
    assert steps_of(5, local) == len(list(batches(range(5), local, STREAM)))


def trained(records: Tensor, **settings: object) -> float:
    """The weight after a local training from 0, on records with the loss ½(w − record)²."""
    learner = Quadratics(records)
    local = SGD.model_copy(update=settings)
    return float(learner.train(torch.zeros(1), range(len(records)), local, STREAM).change)


def test_steps_are_made_with_the_rate_of_their_place() -> None:
    # Gradient w − 8 in each of two steps, with rates 0.5 and 0.25.
    assert trained(numbers(8, 8), schedule="linear") == pytest.approx(4 + 0.25 * 4)


def test_a_long_gradient_is_cut_to_its_bound_and_a_short_one_is_not() -> None:
    assert trained(numbers(8), max_gradient_norm=2.0) == pytest.approx(1)
    assert trained(numbers(8), max_gradient_norm=20.0) == pytest.approx(4)


def test_each_local_training_begins_its_schedule_again() -> None:
    assert trained(numbers(8, 8), schedule="cosine") == trained(numbers(8, 8), schedule="cosine")
    assert math.isfinite(trained(numbers(8, 8), schedule="cosine", optimizer="adamw"))


@pytest.mark.parametrize(
    "settings", [{"schedule": "linear"}, {"warmup_steps": 1}, {"max_gradient_norm": 1.0}]
)
def test_providers_with_steps_of_their_own_train_one_after_another(settings: dict[str, object]) -> None:
    assert SGD.is_elementwise
    assert not SGD.model_copy(update=settings).is_elementwise
