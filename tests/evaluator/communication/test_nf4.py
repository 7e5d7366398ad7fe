import struct
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from evaluator.communication.nf4 import BLOCK, CHUNK, LEVELS, dequantize, message_bytes, quantize

# As printed by Dettmers et al. 2023, appendix E.
PUBLISHED = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
]  # fmt: skip
WIDEST_GAP = float(np.diff(LEVELS).max())
SMALLEST_SCALE = 2.0**-126

vectors = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=200).map(
    lambda numbers: np.array(numbers, dtype=np.float32)
)


def evenly_spaced(start: float, stop: float, count: int) -> NDArray[np.float64]:
    """`count` probabilities from `start` to `stop`, counted from the nearer end, in float32 as the authors did."""
    first, last = np.float32(start), np.float32(stop)
    step = (last - first) / np.float32(count - 1)
    points = [
        first + step * np.float32(i) if i < count // 2 else last - step * np.float32(count - 1 - i)
        for i in range(count)
    ]
    return np.array(points, dtype=np.float64)


def test_the_levels_are_normal_quantiles_with_an_exact_zero() -> None:
    offset = 0.9677083
    positive = norm.ppf(evenly_spaced(offset, 0.5, 9)[:-1])
    negative = -norm.ppf(evenly_spaced(offset, 0.5, 8)[:-1])
    derived = np.sort(np.concatenate([negative, [0.0], positive])).astype(np.float32)
    np.testing.assert_allclose(LEVELS, derived / derived.max(), rtol=0, atol=2e-8)
    assert LEVELS[7] == 0.0


def test_the_levels_are_the_published_ones_to_the_bit() -> None:
    assert LEVELS.tolist() == PUBLISHED


def test_a_block_worked_out_by_hand() -> None:
    # Divided by 2: 1, -1, 0, 0.5, -0.1, 0.85. Half-way from 0.4407 to 0.5626 is 0.5017, from -0.1848 to -0.0911
    # is -0.1379, from 0.7230 to 1 is 0.8615.
    message = quantize(np.array([2.0, -2.0, 0.0, 1.0, -0.2, 1.7], dtype=np.float32))
    assert message == struct.pack("<f", 2.0) + bytes([0xF0, 0x7C, 0x6E])
    assert dequantize(message, 6).tolist() == [
        2.0, -2.0, 0.0, 2 * 0.44070982933044434, 2 * -0.09105003625154495, 2 * 0.7229568362236023,
    ]  # fmt: skip


def test_two_codes_share_a_byte_the_first_in_the_high_half() -> None:
    assert quantize(np.array([1.0, -1.0], dtype=np.float32))[4:] == bytes([0xF0])
    assert quantize(np.array([-1.0, 1.0], dtype=np.float32))[4:] == bytes([0x0F])


def test_the_spare_half_byte_holds_the_code_of_zero() -> None:
    assert quantize(np.array([1.0], dtype=np.float32))[4:] == bytes([0xF7])


def test_all_scales_stand_before_all_codes() -> None:
    values = np.repeat(np.array([3.0, -0.5, 7.0], dtype=np.float32), [64, 64, 2])
    assert quantize(values) == struct.pack("<fff", 3.0, 0.5, 7.0) + b"\xff" * 32 + b"\x00" * 32 + b"\xff"


def test_half_way_between_two_levels_the_lower_is_taken() -> None:
    midpoint = (LEVELS[11] + LEVELS[12]) / np.float32(2)
    above = np.nextafter(midpoint, np.float32(1))
    assert quantize(np.array([1.0, midpoint, above, 0.0], dtype=np.float32))[4:] == bytes([0xFB, 0xC7])


@pytest.mark.parametrize("scale", [1.0, 3.14, 2.0**-126, 3e38])
def test_every_level_comes_back_as_it_is(scale: float) -> None:
    values = LEVELS * np.float32(scale)
    np.testing.assert_array_equal(dequantize(quantize(values), 16), values)


@settings(deadline=None)
@given(vectors)
def test_an_error_is_at_most_half_the_widest_gap_of_its_block(values: NDArray[np.float32]) -> None:
    decoded = dequantize(quantize(values), len(values))
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK].astype(np.float64)
        bound = max(WIDEST_GAP / 2 * np.abs(block).max() * (1 + 1e-6), SMALLEST_SCALE)
        assert np.abs(decoded[start : start + BLOCK] - block).max() <= bound


def test_the_bound_on_the_error_is_reached() -> None:
    middle = (LEVELS[0] + LEVELS[1]) / np.float32(2)
    values = np.array([-1.0, middle], dtype=np.float32)
    assert abs(dequantize(quantize(values), 2)[1] - middle) == pytest.approx(WIDEST_GAP / 2, rel=1e-6)


@settings(deadline=None)
@given(vectors)
def test_the_nearest_level_is_taken(values: NDArray[np.float32]) -> None:
    decoded = dequantize(quantize(values), len(values)).astype(np.float64)
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK].astype(np.float64)
        scale = np.abs(block).max()
        if scale >= SMALLEST_SCALE:
            distances = np.abs(block[:, np.newaxis] - LEVELS.astype(np.float64) * scale).min(axis=1)
            assert (np.abs(decoded[start : start + BLOCK] - block) <= distances + 1e-6 * scale).all()


@settings(deadline=None)
@given(vectors)
def test_quantizing_again_changes_nothing(values: NDArray[np.float32]) -> None:
    message = quantize(values)
    assert quantize(dequantize(message, len(values))) == message


def test_one_block_does_not_reach_into_another() -> None:
    values = np.concatenate([np.full(64, 1e30), np.full(64, 1e-30), np.zeros(64), [5.0]]).astype(np.float32)
    np.testing.assert_array_equal(dequantize(quantize(values), 193), values)


def test_zeros_stay_zeros() -> None:
    values = np.array([0.0, 5.0, 0.0, -3.0], dtype=np.float32)
    assert (dequantize(quantize(values), 4) == 0).tolist() == [True, False, True, False]
    assert not dequantize(quantize(np.zeros(130, dtype=np.float32)), 130).any()


def test_a_block_below_the_normal_numbers_is_sent_as_zeros() -> None:
    assert not dequantize(quantize(np.array([1e-45, -1.1e-38], dtype=np.float32)), 2).any()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 70, CHUNK + 1])
def test_what_is_not_finite_is_rejected(bad: float, place: int) -> None:
    values = np.ones(CHUNK + 2, dtype=np.float32)
    values[place] = bad
    with pytest.raises(ValueError, match="not finite"):
        quantize(values)


@pytest.mark.parametrize(
    ("size", "length"),
    [
        (0, 0),
        (1, 5),
        (2, 5),
        (3, 6),
        (64, 36),
        (65, 41),
        (128, 72),
        (663_552, 373_248),
        (3_419_136, 1_923_264),
    ],
)
def test_a_message_takes_four_and_a_half_bits_a_value_and_whole_bytes(size: int, length: int) -> None:
    assert message_bytes(size) == length
    assert len(quantize(np.ones(size, dtype=np.float32))) == length


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 65])
def test_chunks_leave_no_trace(size: int) -> None:
    values = np.random.default_rng(7).standard_normal(size).astype(np.float32)
    decoded = dequantize(quantize(values), size)
    blockwise = [values[start : start + BLOCK] for start in (0, CHUNK - BLOCK, (size - 1) // BLOCK * BLOCK)]
    for start, block in zip((0, CHUNK - BLOCK, (size - 1) // BLOCK * BLOCK), blockwise, strict=True):
        np.testing.assert_array_equal(decoded[start : start + BLOCK], dequantize(quantize(block), len(block)))


@pytest.mark.parametrize("change", [b"", b"12"])
def test_a_message_of_another_length_is_rejected(change: bytes) -> None:
    message = quantize(np.ones(100, dtype=np.float32))
    with pytest.raises(ValueError, match="58 bytes"):
        dequantize(message[:-1] + change, 100)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -1.0])
def test_a_scale_that_no_block_has_is_rejected(scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        dequantize(struct.pack("<f", scale) + b"\x77", 2)


def test_millions_of_values_take_seconds_and_little_memory() -> None:
    values = np.random.default_rng(7).standard_normal(4 * CHUNK).astype(np.float32)
    start = time.process_time()
    tracemalloc.start()
    dequantize(quantize(values), len(values))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - start < 20
    assert peak < 2.5 * values.nbytes + 40 * CHUNK
