"""Sums and noise on a grid: what is released doesn't show in its low bits what was added."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluator.mechanisms.noise import Noise
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.grid import LARGEST, add_on_grid, grid_step
from starter_kit.dp.laplace_release import LaplaceRelease

ROW = 64  # the coordinates of a token's embedding
ROUNDS = 16
SIGMA = 4.8


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2000), st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1))
def test_one_update_moves_the_sum_by_at_most_its_length(numel: int, clip_norm: float, seed: int) -> None:
    """Also where sums reach the end of the grid."""
    generator = torch.Generator().manual_seed(seed)
    step = grid_step(clip_norm, numel)
    updates = [torch.randn(numel, generator=generator) for _ in range(6)]
    updates = [update * (clip_norm / float(update.double().norm()) * (1 - 1e-6)) for update in updates]
    near_the_end = torch.full((numel,), (LARGEST // 3 - 2) * step)
    for start in (torch.zeros(numel), near_the_end):
        with_it, without = start.clone(), start.clone()
        for number, update in enumerate(updates):
            add_on_grid(with_it, update, step, 3)
            if number != 2:
                add_on_grid(without, update, step, 3)
        assert float((with_it.double() - without.double()).norm()) <= clip_norm
        assert torch.equal(with_it / step, (with_it / step).round())
        assert float(with_it.abs().max()) <= LARGEST // 3 * step


def test_rounding_takes_a_thousandth_of_an_update_at_most() -> None:
    for numel in (1, 100, 100_000):
        update = torch.full((numel,), 0.999 / math.sqrt(numel))
        total = torch.zeros(numel)
        add_on_grid(total, update, grid_step(1.0, numel), 1)
        assert float((total - update).norm()) < 2.0**-10


def low_bits(mechanism: GaussianSum, sums: list[float], numel: int, rows: int) -> list[np.ndarray]:
    """The released values of token rows, in steps of the grid, for rows with each of these sums in a coordinate."""
    step = grid_step(mechanism.clip_norm, numel)
    found = []
    for value in sums:
        total = torch.zeros(numel)
        update = torch.full((numel,), value / 10)
        for _ in range(10):
            add_on_grid(total, update, step, 1)
        released = [
            mechanism.noised_by_server(total).double() / step for _ in range(rows * ROUNDS // (numel // ROW))
        ]
        found.append(torch.cat(released).numpy())
    return found


@pytest.mark.parametrize("value", [0.3, 0.05, 0.01])
def test_low_bits_of_a_row_do_not_tell_whether_a_token_was_used(value: float) -> None:
    """By floating-point noise on floating-point sums, 9 to 96 % of such rows could be recognized after 16 rounds."""
    mechanism = GaussianSum(1.0, Noise(multiplier=SIGMA))
    unused, used = low_bits(mechanism, [0.0, value], 4096, rows=2000)
    for released in (unused, used):
        # Every value is a whole number of steps that float32 holds exactly, however small it is.
        assert np.array_equal(released, np.rint(released))
        assert np.abs(released).max() < LARGEST
    for bits in (1, 4, 8):
        counts = [
            np.bincount(released.astype(np.int64) & (2**bits - 1), minlength=2**bits)
            for released in (unused, used)
        ]
        assert stats.chi2_contingency(counts).pvalue > 1e-10
        # They are as good as uniform, since the noise has tens of thousands of steps.
        assert stats.chisquare(counts[0]).pvalue > 1e-10


def test_a_floating_point_sum_would_show_it() -> None:
    """The test above can fail: without the grid, small values off the sum's own grid are of unused rows only."""
    generator = torch.Generator().manual_seed(1)
    noise = (SIGMA * torch.randn(1_000_000, generator=generator, dtype=torch.float64)).float()
    used = noise + torch.tensor(0.3)
    small = 2.0**-8
    finest = 2.0**-26

    def off(values: torch.Tensor) -> float:
        near = values[values.abs() < small].double() / finest
        return float((near != near.round()).double().mean())

    assert off(noise) > 0.9
    assert off(used) == 0


def test_laplace_noise_is_on_a_grid_too() -> None:
    release = LaplaceRelease(1.0, 2.0)
    exact = torch.randn(1000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    step = 2.0 ** math.floor(math.log2(0.5 * 2.0**-20 / 1000))
    released = [release.noised(exact, 0.5).double() / step for _ in range(20)]
    assert all(torch.equal(one, one.round()) for one in released)
    assert torch.equal(release.noised(exact, 0.0), exact.float())
