"""Near copies of a checkpoint, and honest trainings of the same base weights."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from evaluator.checkpoints.weight_sample import COSINE, FEWEST, Likeness, likenesses, weight_sample
from evaluator.messages.jobs import WeightSample

KEY = "5a" * 32
Weights = dict[str, NDArray[np.floating]]
# Of very different sizes and changes, as in a real model.
SHAPES = {f"block.{number}": (40, 10 * (number + 1)) for number in range(12)} | {"bias": (3,)}


def noise(seed: int) -> Weights:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


BASE = noise(0)


def trained(seed: int, common: float = 0.0) -> Weights:
    """Weights of a training whose changes have a correlation of `common` with those of other seeds."""
    own, shared = noise(seed), noise(1)
    parts = np.sqrt(common), np.sqrt(1 - common)
    return {
        name: BASE[name] + np.float32(0.01) * (parts[0] * shared[name] + parts[1] * own[name])
        for name in SHAPES
    }


@pytest.fixture
def take(tmp_path: Path):
    save_file(BASE, tmp_path / "base.safetensors")

    def sample(weights: Weights, key: str = KEY) -> WeightSample:
        save_file(
            {name: value.astype(np.float32) for name, value in weights.items()}, tmp_path / "one.safetensors"
        )
        return weight_sample(tmp_path / "one.safetensors", tmp_path / "base.safetensors", key)

    return sample


def compared(one: WeightSample, other: WeightSample) -> Likeness | None:
    return likenesses(one.changes, {0: other.changes}, one.per_tensor).get(0)


def perturbed(weights: Weights, share: float, size: float) -> Weights:
    """The weights, with noise added to a share of them, as large as `size` times what training changed."""
    rng = np.random.default_rng(9)
    return {
        name: value + 0.01 * size * rng.normal(size=value.shape) * (rng.random(value.shape) < share)
        for name, value in weights.items()
    }


@pytest.mark.parametrize(
    ("share", "size"),
    [(0.0, 0.0), (1e-4, 1.0), (1e-4, 1e6), (0.01, 100.0), (1.0, 1e-5), (1.0, 0.02)],
    ids=["none", "few", "few by far", "a hundredth by far", "all by rounding", "all by 2%"],
)
def test_a_copy_with_small_changes_or_few_is_near(take, share: float, size: float) -> None:
    found = compared(take(trained(2)), take(perturbed(trained(2), share, size)))
    assert found is not None
    assert found.is_near


def test_a_scaled_copy_is_near_by_its_cosine(take) -> None:
    scaled = {name: BASE[name] + 0.8 * (value - BASE[name]) for name, value in trained(2).items()}
    found = compared(take(trained(2)), take(scaled))
    assert found is not None
    assert found.agreement < 0.5
    assert found.cosine > COSINE


@pytest.mark.parametrize("common", [0.0, 0.5, 0.9, 0.99])
def test_honest_trainings_of_the_same_base_are_not_near_even_where_they_learn_much_the_same(
    take, common: float
) -> None:
    for seed in range(3, 8):
        found = compared(take(trained(2, common)), take(trained(seed, common)))
        assert found is not None
        assert found.agreement < 0.5
        assert found.cosine < 0.9975


def test_steps_of_equal_length_that_agree_in_most_signs_are_not_near(take) -> None:
    def signs(seed: int) -> Weights:
        rng = np.random.default_rng(seed)
        return {
            name: BASE[name] + 0.01 * np.sign(noise(1)[name]) * np.where(rng.random(shape) < 0.97, 1, -1)
            for name, shape in SHAPES.items()
        }

    found = compared(take(signs(2)), take(signs(3)))
    assert found is not None
    assert found.agreement > 0.9
    assert not found.is_near


def test_what_training_left_as_it_was_counts_for_nothing(take) -> None:
    one, other = (
        {**BASE, "block.3": trained(seed)["block.3"], "block.4": trained(seed)["block.4"]} for seed in (2, 3)
    )
    found = compared(take(one), take(other))
    assert found is not None
    assert found.agreement < 0.2


def test_too_few_changed_places_are_not_compared(take) -> None:
    one = {**BASE, "bias": BASE["bias"] + np.float32(1)}
    sample = take(one)
    rows = np.frombuffer(sample.changes, "<f4")
    assert (rows != 0).sum() == sample.per_tensor
    assert compared(take(BASE), take(BASE)) is None
    assert likenesses(rows[:FEWEST].tobytes(), {0: sample.changes}, 1) == {}


def test_the_places_follow_from_the_key_and_travel_as_text(take) -> None:
    sample = take(trained(2))
    assert sample == take(trained(2))
    other = take(trained(2), key="5b" * 32)
    assert other.key_id != sample.key_id
    assert other.changes != sample.changes
    assert WeightSample.model_validate_json(sample.model_dump_json()) == sample
    assert len(sample.changes) <= 4 * 2048
    assert KEY not in repr(sample)
