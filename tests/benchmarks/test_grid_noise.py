"""Noise on a grid compared with plain float noise of the same size: seconds for a million coordinates, on one thread.

Both draw the same number of normals from the operating system's entropy. The plain noise scales and adds them to the
sum in float32; that on the grid rounds the sum and the noise to whole steps.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from starter_kit.dp.grid import grid_step
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.noise import CHUNK, standard_normals, with_gaussian_noise

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

COORDINATES = 4 * CHUNK
STD = 1.5
REPEATS = 9
MAX_RATIO = 2.0


def plain(vector: Tensor, keystream: Keystream) -> Tensor:
    """Return the vector plus noise that isn't rounded to a grid."""
    noised = vector.clone()
    for part in torch.split(noised, CHUNK):
        part.add_(standard_normals(len(part), keystream).mul_(STD))
    return noised


def on_grid(vector: Tensor, keystream: Keystream) -> Tensor:
    return with_gaussian_noise(vector, STD, grid_step(1.0, COORDINATES), keystream)


def seconds(noised: Callable[[Tensor, Keystream], Tensor], vector: Tensor) -> float:
    began = time.process_time()
    noised(vector, Keystream())
    return time.process_time() - began


def test_noise_on_a_grid_takes_at_most_twice_the_time_of_plain_noise() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        vector = torch.zeros(COORDINATES)
        # Alternately, without the first of each, which warms caches up.
        tries = [(seconds(plain, vector), seconds(on_grid, vector)) for _ in range(REPEATS + 1)][1:]
    finally:
        torch.set_num_threads(threads)
    reference, measured = (statistics.median(column) for column in zip(*tries, strict=True))
    ratio = measured / reference
    print(f"\n{COORDINATES:,} coordinates; medians of {REPEATS}, CPU seconds, one thread")
    print(f"plain noise        {reference:7.4f} s")
    print(f"noise on a grid    {measured:7.4f} s, {ratio:.2f} of plain noise (at most {MAX_RATIO:.0f})")
    assert ratio <= MAX_RATIO
