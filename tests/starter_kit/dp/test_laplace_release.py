import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from starter_kit.dp.laplace_release import LaplaceRelease

SIZE = 50_000


def has_scale(noise: Tensor, scale: float) -> bool:
    return bool(stats.kstest(noise.double().numpy() / scale, "laplace").pvalue > 1e-7)


def test_the_noise_is_laplace_of_the_multiplier_times_the_sensitivity_and_the_test_sees_another_scale() -> (
    None
):
    noise = LaplaceRelease(clip_norm=1.0, relative_scale=0.5).noised(torch.zeros(SIZE), 0.06)
    assert has_scale(noise, 0.03)
    assert not has_scale(noise, 0.9 * 0.03)
    assert not has_scale(noise, 1.1 * 0.03)


def test_each_gradient_is_clipped_by_itself_in_l1() -> None:
    gradients = iter([torch.tensor([3.0, -1.0]), torch.tensor([0.5, 0.5]), torch.tensor([0.0, -8.0])])
    total = LaplaceRelease(2.0, 1.0).clipped_sum(gradients, 2)
    assert total.dtype == torch.float64
    # With SSE4 and AVX-512 it is 6e-7 off.
    assert total.tolist() == pytest.approx([1.5 + 0.5, -0.5 + 0.5 - 2.0], abs=1e-5)


def test_a_gradient_that_is_not_finite_adds_nothing() -> None:
    gradients = [
        torch.tensor([1.0, float("nan")]),
        torch.tensor([1.0, 0.0]),
        torch.tensor([float("inf"), 0.0]),
    ]
    assert LaplaceRelease(5.0, 1.0).clipped_sum(gradients, 2).tolist() == [1.0, 0.0]


def test_no_gradients_are_a_sum_of_zero() -> None:
    assert LaplaceRelease(5.0, 1.0).clipped_sum([], 3).tolist() == [0.0, 0.0, 0.0]


def test_what_is_released_is_rounded_once_after_the_noise() -> None:
    """A difference that float32 can't hold beside the exact value reaches the result all the same."""
    exact = torch.full((SIZE,), 1.0, dtype=torch.float64) + 2.0**-26
    released = LaplaceRelease(1.0, 1.0).noised(exact, 1e-12)
    assert released.dtype == torch.float32
    assert set(released.tolist()) == {1.0}
    near = torch.full((SIZE,), 1.0 + 2.0**-24, dtype=torch.float64)  # halfway between two float32 numbers
    assert 0.49 < float((LaplaceRelease(1.0, 1.0).noised(near, 1e-9) > 1).float().mean()) < 0.51


def test_two_releases_of_one_mechanism_and_two_mechanisms_are_independent() -> None:
    one = LaplaceRelease(1.0, 1.0)
    draws = [
        release.noised(torch.zeros(SIZE), 1.0).numpy() for release in (one, one, LaplaceRelease(1.0, 1.0))
    ]
    assert np.abs(np.corrcoef(np.stack(draws))[np.triu_indices(3, 1)]).max() < 6 / np.sqrt(SIZE)


def test_the_keystream_is_not_shown() -> None:
    assert "ey" not in repr(LaplaceRelease(1.0, 1.0))
