"""Vectors on a grid: exact where they can be, rejected where they would wrap."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starter_kit.secure_aggregation.fixed_point import LARGEST_SUM, Grid, OutOfBoundError, finest_grid
from starter_kit.secure_aggregation.masks import CHUNK


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_example_by_hand(dtype: type) -> None:
    grid = Grid(step=0.25, bound=2.0, clients=3)
    # In steps of a quarter: 1, -4, then half a step to even, one and a half to even, and the bound.
    encoded = grid.encode(np.array([0.3, -1.0, 0.125, 0.375, -2.0], dtype))
    assert encoded.dtype == np.uint32
    assert encoded.tolist() == [1, 2**32 - 4, 0, 2, 2**32 - 8]
    total = encoded + grid.encode(np.array([-0.5, 0.0, -0.2, 2.0, -2.0], dtype))
    assert grid.decode_sum(total).tolist() == [-0.25, -1.0, -0.25, 2.5, -4.0]


def test_the_largest_sum_of_both_signs_comes_back() -> None:
    grid = finest_grid(bound=3.0, clients=7)
    for sign in (1, -1):
        encoded = grid.encode(np.array([sign * 3.0]))
        total = sum([encoded] * 7, start=np.zeros(1, np.uint32))
        assert grid.decode_sum(total).tolist() == [sign * 7 * 3.0]


def test_one_more_client_or_half_the_step_could_wrap_and_is_rejected() -> None:
    clients = 2**20
    grid = finest_grid(bound=1.0, clients=clients)
    assert clients * round(grid.bound / grid.step) <= LARGEST_SUM
    for step, number in ((grid.step / 2, clients), (grid.step, 2 * clients)):
        assert number * round(grid.bound / step) > LARGEST_SUM
        with pytest.raises(ValueError, match="don't come to between 1 and 2147483647 steps"):
            Grid(step, 1.0, number)


@given(st.floats(2.0**-126, 2.0**127), st.integers(1, LARGEST_SUM))
def test_the_finest_grid_cannot_wrap_and_the_next_finer_could(bound: float, clients: int) -> None:
    grid = finest_grid(bound, clients)
    assert 1 <= clients * round(bound / grid.step) <= LARGEST_SUM
    assert clients * round(bound / (grid.step / 2)) > LARGEST_SUM
    assert math.frexp(grid.step)[0] == 0.5


def test_a_round_trip_is_off_by_half_a_step_at_most() -> None:
    grid = finest_grid(bound=1.0, clients=10)
    vector = np.random.default_rng(0).uniform(-1, 1, 3 * CHUNK // 2)
    assert np.abs(grid.decode_sum(grid.encode(vector)) - vector).max() <= grid.step / 2


@pytest.mark.parametrize("value", [2.5000002, -3.0, math.inf, -math.inf, math.nan])
def test_a_value_beyond_the_bound_is_rejected_and_not_cut_off(value: float) -> None:
    vector = np.zeros(CHUNK + 10, np.float32)
    vector[CHUNK + 3] = value
    with pytest.raises(OutOfBoundError, match=f"coordinate {CHUNK + 3} is not within ±2.5"):
        finest_grid(bound=2.5, clients=2).encode(vector)


@pytest.mark.parametrize(
    "vector",
    [np.zeros((2, 2)), np.zeros(2, np.int64), np.zeros(2, np.float16)],
    ids=["matrix", "int", "half"],
)
def test_anything_but_a_vector_of_floats_is_rejected(vector: np.ndarray) -> None:
    with pytest.raises(ValueError, match="one-dimensional, of float32 or float64"):
        Grid(1.0, 1.0, 1).encode(vector)


@pytest.mark.parametrize("step", [0.3, 0.0, -0.25, math.inf, math.nan])
def test_a_step_that_is_no_power_of_two_is_rejected(step: float) -> None:
    with pytest.raises(ValueError, match="a step is a power of two"):
        Grid(step, 1.0, 1)


@pytest.mark.parametrize(
    ("bound", "clients"), [(0.0, 1), (-1.0, 1), (math.inf, 1), (math.nan, 1), (1.0, 0), (1.0, 2**31)]
)
def test_a_bound_or_number_of_clients_out_of_range_is_rejected(bound: float, clients: int) -> None:
    with pytest.raises(ValueError, match="from"):
        finest_grid(bound, clients)


def test_a_step_above_the_values_which_would_make_all_of_them_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="between 1 and"):
        Grid(4.0, 1.0, 1)
