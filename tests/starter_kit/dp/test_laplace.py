"""The noise has the distribution that the Laplace mechanism assumes. False alarms are below one in a million."""

import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.testing import assert_close

from starter_kit.dp.keystream import Keystream
from starter_kit.dp.laplace import CHUNK, clip_l1, laplace_noise, standard_quantiles

SIZE = 200_000


def scale_is(noise: torch.Tensor, scale: float) -> bool:
    """Two-sided test of the scale: 2 Σ|x|/scale is χ² with 2n degrees of freedom."""
    statistic = float(2 * (noise.double() / scale).abs().sum())
    freedom = 2 * len(noise)
    return bool(min(stats.chi2.cdf(statistic, freedom), stats.chi2.sf(statistic, freedom)) > 1e-7)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 37.5])
def test_the_scale_is_right_and_the_test_sees_a_wrong_one(scale: float) -> None:
    keystream = Keystream()
    assert scale_is(laplace_noise(SIZE, scale, keystream), scale)
    assert not scale_is(laplace_noise(SIZE, 1.1 * scale, keystream), scale)
    assert not scale_is(laplace_noise(SIZE, 0.9 * scale, keystream), scale)


def test_the_shape_is_laplace_and_the_test_sees_another_one() -> None:
    assert stats.kstest(laplace_noise(SIZE, 1.0, Keystream()).numpy(), "laplace").pvalue > 1e-7
    normal = np.random.default_rng().normal(scale=np.sqrt(2), size=SIZE)
    assert stats.kstest(normal, "laplace").pvalue < 1e-7


def test_the_tails_are_there_on_both_sides() -> None:
    noise = laplace_noise(2_000_000, 1.0, Keystream())
    expected = 2_000_000 * stats.laplace.sf(8)
    for beyond_eight in (int((noise > 8).sum()), int((noise < -8).sum())):
        assert abs(beyond_eight - expected) < 6 * np.sqrt(expected)


def test_two_draws_are_independent() -> None:
    keystream = Keystream()
    draws = [laplace_noise(SIZE, 1.0, k) for k in (keystream, keystream, Keystream())]
    correlations = np.corrcoef(np.stack([draw.numpy() for draw in draws]))[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(SIZE)


def test_neighboring_coordinates_are_independent_in_value_and_in_size() -> None:
    noise = laplace_noise(SIZE, 1.0, Keystream()).double().numpy()
    for values in (noise, np.abs(noise), np.sign(noise)):
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 6 / np.sqrt(SIZE - 1)


def test_no_stretch_of_noise_repeats_from_chunk_to_chunk_or_draw_to_draw() -> None:
    keystream = Keystream()
    noise = torch.cat([laplace_noise(2 * CHUNK, 1.0, keystream) for _ in range(2)]).view(4, CHUNK)
    for one in range(4):
        for other in range(one):
            # Float32 values meet by chance now and then; whole stretches do not.
            assert (noise[one] == noise[other]).float().mean() < 1e-3


@pytest.mark.parametrize("size", [0, 1, 2, 3, CHUNK + 1])
def test_any_size_can_be_drawn(size: int) -> None:
    noise = laplace_noise(size, 2.0, Keystream())
    assert noise.shape == (size,)
    assert noise.dtype == torch.float64


def test_no_scale_is_no_noise() -> None:
    assert not laplace_noise(1000, 0.0, Keystream()).any()


def test_noise_does_not_follow_a_seeded_generator() -> None:
    torch.manual_seed(42)
    np.random.seed(42)
    first = laplace_noise(100, 1.0, Keystream())
    torch.manual_seed(42)
    np.random.seed(42)
    assert not torch.equal(first, laplace_noise(100, 1.0, Keystream()))


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_scale_is_rejected(scale: float) -> None:
    with pytest.raises(ValueError, match="Laplace scale"):
        laplace_noise(10, scale, Keystream())


def test_the_quantiles_are_those_of_scipy() -> None:
    uniforms = np.array([2.0**-53, 1e-9, 0.1, 0.25, 0.5, 0.75, 0.9, 1 - 1e-9])
    uniforms = np.ceil(uniforms * 2**53) / 2**53
    np.testing.assert_allclose(
        standard_quantiles(uniforms), stats.laplace.ppf(uniforms), rtol=1e-6, atol=1e-15
    )


def test_the_extreme_uniforms_give_the_stated_largest_values() -> None:
    largest = 52 * math.log(2)
    np.testing.assert_allclose(standard_quantiles(np.array([2.0**-53, 1.0])), [-largest, largest], rtol=1e-15)


def test_the_two_tails_are_mirror_images() -> None:
    numbers = np.concatenate([np.arange(1, 1000), 2 ** np.arange(53), 2**52 - np.arange(10)])
    lower = standard_quantiles(numbers * 2.0**-53)
    upper = standard_quantiles((2**53 + 1 - numbers) * 2.0**-53)
    np.testing.assert_array_equal(lower, -upper)
    assert (lower <= 0).all()


def test_a_model_of_a_million_coordinates_is_noised_in_seconds() -> None:
    keystream = Keystream()
    start = time.process_time()
    laplace_noise(1_000_000, 1.0, keystream)
    assert time.process_time() - start < 10


def l1(vector: torch.Tensor) -> float:
    return float(vector.double().abs().sum())


@settings(deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=50),
    st.floats(1e-50, 1e30),
)
def test_the_l1_norm_of_the_float32_result_never_exceeds_the_clip_norm(
    numbers: list[float], bound: float
) -> None:
    clipped = clip_l1(torch.tensor(numbers, dtype=torch.float32), bound)
    assert clipped is not None
    assert clipped.dtype == torch.float32
    assert math.fsum(abs(value) for value in clipped.tolist()) <= bound


@pytest.mark.parametrize(
    ("update", "bound"),
    [
        (torch.full((1000,), 3e38), 1.0),  # the factor is below float32's normal numbers
        (torch.full((1000,), 3.4e38), 1e-30),
        (torch.full((1000,), 1e-45), 0.9e-42),  # every product is rounded
        (torch.full((1000,), 1.4e-44), 7e-42),
        (torch.cat([torch.tensor([3e38]), torch.full((1000,), 1e-38)]), 1.0),
        (torch.full((3_000_000,), 0.1), 1e-3),
        (torch.randn(3_000_000, generator=torch.Generator().manual_seed(4)), 1e-41),
    ],
)
def test_the_l1_bound_holds_where_float32_ends(update: torch.Tensor, bound: float) -> None:
    clipped = clip_l1(update, bound)
    assert clipped is not None
    assert l1(clipped) <= bound


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_clipping_only_scales_and_only_down_to_the_bound(numbers: list[float], bound: float) -> None:
    update = torch.tensor(numbers, dtype=torch.float32)
    clipped = clip_l1(update, bound)
    assert clipped is not None
    factor = min(1.0, bound / l1(update)) if update.any() else 1.0
    assert_close(clipped, update * factor, rtol=1e-5, atol=1e-6 * bound)


def test_an_update_within_the_bound_is_left_as_it_is() -> None:
    update = torch.tensor([0.25, -0.5])
    assert clip_l1(update, 0.75) is update


def test_the_norm_that_counts_is_the_sum_of_the_sizes() -> None:
    clipped = clip_l1(torch.tensor([3.0, -4.0]), 3.5)  # L1 norm 7, L2 norm 5
    assert clipped is not None
    assert clipped.tolist() == pytest.approx([1.5, -2.0], rel=1e-6)


def test_a_large_update_uses_the_whole_bound() -> None:
    clipped = clip_l1(torch.randn(1_000_000), 0.5)
    assert clipped is not None
    assert l1(clipped) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_an_update_that_is_not_finite_contributes_nothing(bad: float) -> None:
    assert clip_l1(torch.tensor([1.0, bad]), 1.0) is None


def test_an_update_without_coordinates_has_nothing_to_bound() -> None:
    clipped = clip_l1(torch.zeros(0), 1.0)
    assert clipped is not None
    assert clipped.shape == (0,)


@pytest.mark.parametrize(
    ("update", "bound"),
    [
        (torch.ones(2, 2), 1.0),
        (torch.ones(2, dtype=torch.float16), 1.0),
        (torch.ones(2), 0.0),
        (torch.ones(2), -1.0),
        (torch.ones(2), float("nan")),
    ],
)
def test_what_cannot_be_bounded_is_rejected(update: torch.Tensor, bound: float) -> None:
    with pytest.raises(ValueError, match=r"update|clip norm"):
        clip_l1(update, bound)
