"""The noise has the distribution that the accountant assumes. False alarms are below one in a million."""

import math
import time

import numpy as np
import pytest
import torch
from scipy import stats

from starter_kit.dp.keystream import KEY_BYTES, Keystream, drawing_from
from starter_kit.dp.noise import CHUNK, standard_normals, with_gaussian_noise

SIZE = 200_000


def gaussian_noise(size: int, std: float, keystream: Keystream) -> torch.Tensor:
    """Noise on a sum of zeros, on a fine grid."""
    return with_gaussian_noise(torch.zeros(size), std, 2.0**-30, keystream)


def scale_is(noise: torch.Tensor, std: float) -> bool:
    """Two-sided χ² test of the variance: Σ(x/std)² is χ² with n degrees of freedom."""
    statistic = float((noise.double() / std).square().sum())
    return bool(min(stats.chi2.cdf(statistic, len(noise)), stats.chi2.sf(statistic, len(noise))) > 1e-7)


@pytest.mark.parametrize("std", [1e-4, 1.0, 37.5])
def test_the_scale_is_right_and_the_test_sees_a_wrong_one(std: float) -> None:
    keystream = Keystream()
    assert scale_is(gaussian_noise(SIZE, std, keystream), std)
    assert not scale_is(gaussian_noise(SIZE, 1.3 * std, keystream), std)
    assert not scale_is(gaussian_noise(SIZE, 0.7 * std, keystream), std)


def test_the_shape_is_normal_and_the_test_sees_another_one() -> None:
    assert stats.kstest(gaussian_noise(SIZE, 1.0, Keystream()).numpy(), "norm").pvalue > 1e-7
    laplace = np.random.default_rng().laplace(scale=np.sqrt(0.5), size=SIZE)
    assert stats.kstest(laplace, "norm").pvalue < 1e-7


def test_the_tails_are_there() -> None:
    beyond_four = int((gaussian_noise(2_000_000, 1.0, Keystream()).abs() > 4).sum())
    expected = 2_000_000 * 2 * stats.norm.sf(4)
    assert abs(beyond_four - expected) < 6 * np.sqrt(expected)


def test_two_draws_are_independent() -> None:
    keystream = Keystream()
    draws = [gaussian_noise(SIZE, 1.0, k) for k in (keystream, keystream, Keystream())]
    correlations = np.corrcoef(np.stack([draw.numpy() for draw in draws]))[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(SIZE)


def test_neighboring_coordinates_and_box_muller_pairs_are_independent() -> None:
    normals = standard_normals(SIZE, Keystream()).numpy()
    for lag in (1, SIZE // 2):
        assert abs(np.corrcoef(normals[lag:], normals[:-lag])[0, 1]) < 6 / np.sqrt(SIZE - lag)
        squares = normals**2
        assert abs(np.corrcoef(squares[lag:], squares[:-lag])[0, 1]) < 6 / np.sqrt(SIZE - lag)


def test_no_stretch_of_noise_repeats() -> None:
    keystream = Keystream()
    normals = np.concatenate([standard_normals(SIZE, keystream).numpy() for _ in range(3)])
    assert len(np.unique(normals)) == len(normals)


@pytest.mark.parametrize("size", [0, 1, 2, 3, (1 << 18) + 1])
def test_any_size_can_be_drawn(size: int) -> None:
    noise = gaussian_noise(size, 2.0, Keystream())
    assert noise.shape == (size,)
    assert noise.dtype == torch.float32


def test_noise_does_not_follow_a_seeded_generator() -> None:
    torch.manual_seed(42)
    np.random.seed(42)
    first = gaussian_noise(100, 1.0, Keystream())
    torch.manual_seed(42)
    np.random.seed(42)
    assert not torch.equal(first, gaussian_noise(100, 1.0, Keystream()))


@pytest.mark.parametrize("std", [-1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_scale_is_rejected(std: float) -> None:
    with pytest.raises(ValueError, match="standard deviation"):
        gaussian_noise(10, std, Keystream())


def test_a_model_of_a_million_coordinates_is_noised_in_seconds() -> None:
    keystream = Keystream()
    start = time.process_time()
    gaussian_noise(1_000_000, 1.0, keystream)
    assert time.process_time() - start < 10


def test_the_noise_of_a_key_is_box_muller_of_the_uniforms_of_that_key() -> None:
    size, std = CHUNK + 5, 3.0
    with drawing_from(bytes(KEY_BYTES)):
        noise = gaussian_noise(size, std, Keystream())
    expected = []
    with drawing_from(bytes(KEY_BYTES)):
        for half in (CHUNK // 2, 3):
            radii, angles = Keystream().uniforms(2 * half).reshape(2, half).tolist()
            for turn in (math.cos, math.sin):
                expected += [
                    std * math.sqrt(-2 * math.log(radius)) * turn(2 * math.pi * angle)
                    for radius, angle in zip(radii, angles, strict=True)
                ]
    # The last of them is not needed for an odd size.
    assert np.allclose(noise.numpy(), expected[:size], rtol=2.0**-23, atol=2.0**-31)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_key_gives_the_same_noise_on_a_gpu() -> None:
    drawn = []
    for device in ("cpu", "cuda"):
        with drawing_from(bytes(KEY_BYTES)):
            zeros = torch.zeros(CHUNK + 5, device=device)
            drawn.append(with_gaussian_noise(zeros, 3.0, 2.0**-30, Keystream()))
    assert drawn[1].device.type == "cuda"
    assert np.allclose(drawn[0].numpy(), drawn[1].cpu().numpy(), rtol=2.0**-22, atol=2.0**-30)
