"""NF4: four bits per value, chosen for normally distributed values, with one float32 scale for each block of 64.

Dettmers et al. 2023 (QLoRA, arXiv:2305.14314), section 3. The sixteen levels are normal quantiles at evenly spaced
probabilities: eight from 0.9677083 down towards 1/2, seven mirrored ones from 1 - 0.9677083 up towards 1/2, and 0,
all divided by the largest. A block is divided by its largest absolute value and each of its values becomes the number
of the nearest level; half-way between two, the lower.

The message for d values is

    ceil(d/64) scales, float32, little-endian, then ceil(d/2) bytes of codes:
    byte i holds the code of value 2i in its high half and of value 2i+1 in its low half,

which is 4.5 bits per value where 64 divides d. The spare half byte of an odd d holds the code of zero. A block whose
largest absolute value is below 2⁻¹²⁶ (1.2e-38) is sent as zeros: its scale would have too few digits left. With that,
quantizing what came out of a message gives the same message again.
"""

import numpy as np
from numpy.typing import NDArray

BLOCK = 64
# How many values are processed at a time, which bounds memory.
CHUNK = BLOCK << 14
LEVELS: NDArray[np.float32] = np.array(
    [
        -1.0,
        -0.6961928,
        -0.52507305,
        -0.3949175,
        -0.28444138,
        -0.18477343,
        -0.091050036,
        0.0,
        0.0795803,
        0.1609302,
        0.2461123,
        0.33791524,
        0.44070983,
        0.562617,
        0.72295684,
        1.0,
    ],
    dtype=np.float32,
)
MIDPOINTS: NDArray[np.float32] = (LEVELS[1:] + LEVELS[:-1]) / np.float32(2)
SMALLEST_SCALE = np.finfo(np.float32).smallest_normal


def message_bytes(size: int) -> int:
    """Return the length of the message for `size` values."""
    return 4 * -(-size // BLOCK) + -(-size // 2)


def quantize(values: NDArray[np.float32]) -> bytes:
    """Return the message for `values` (d,), a vector of finite numbers.

    Raises:
        ValueError: A value is not finite.
    """
    scales = np.empty(-(-len(values) // BLOCK), dtype="<f4")
    codes = np.empty(-(-len(values) // 2), dtype=np.uint8)
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        blocks = np.pad(part, (0, -len(part) % BLOCK)).reshape(-1, BLOCK)
        scale = _scales(blocks)
        first = start // BLOCK
        scales[first : first + len(scale)] = scale
        packed = _packed(_codes(blocks, scale))[: -(-len(part) // 2)]
        codes[start // 2 : start // 2 + len(packed)] = packed
    return scales.tobytes() + codes.tobytes()


def dequantize(message: bytes, size: int) -> NDArray[np.float32]:
    """Return the values (size,) of a message.

    Raises:
        ValueError: The message is not of `size` values, or has a scale that is negative or not finite.
    """
    if len(message) != message_bytes(size):
        raise ValueError(f"{size} NF4 values take {message_bytes(size)} bytes, not {len(message)}")
    scales = np.frombuffer(message, dtype="<f4", count=-(-size // BLOCK)).astype(np.float32)
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise ValueError("an NF4 message has a scale that is negative or not finite")
    packed = np.frombuffer(message, dtype=np.uint8, offset=4 * len(scales))
    values = np.empty(size, dtype=np.float32)
    for start in range(0, size, CHUNK):
        part = values[start : start + CHUNK]
        codes = _unpacked(packed[start // 2 : (start + CHUNK) // 2])[: len(part)]
        scale = np.repeat(scales[start // BLOCK : (start + CHUNK) // BLOCK], BLOCK)[: len(part)]
        np.multiply(LEVELS[codes], scale, out=part)
    return values


def _scales(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
    largest: NDArray[np.float32] = np.abs(blocks).max(axis=1)
    if not np.isfinite(largest).all():
        raise ValueError("a value that is not finite has no NF4 code")
    return np.where(largest < SMALLEST_SCALE, np.float32(0), largest)


def _codes(blocks: NDArray[np.float32], scales: NDArray[np.float32]) -> NDArray[np.uint8]:
    divisors = np.where(scales == 0, np.float32(1), scales)
    return np.searchsorted(MIDPOINTS, blocks / divisors[:, np.newaxis]).astype(np.uint8)


def _packed(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    pairs = codes.reshape(-1, 2)
    return pairs[:, 0] << np.uint8(4) | pairs[:, 1]


def _unpacked(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.stack([packed >> np.uint8(4), packed & np.uint8(15)], axis=1).reshape(-1)
