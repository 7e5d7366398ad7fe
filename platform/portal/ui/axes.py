"""The axes of plots: which round numbers have ticks, and where a value lies.

Lengths are in units of the view box of an SVG picture, of which the origin is at the top left.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

# The steps within a decade at which an axis starts, ends and has its ticks.
STEPS = (1, 2, 5)
# The most ticks of an axis; a longer logarithmic one has ticks at decades, or at every second decade and so on.
MOST_TICKS = 8
LEAST_STEP = 1e-4

Point = tuple[float, float]


@dataclass(frozen=True)
class Tick:
    """A value on an axis, as text, and where it lies."""

    text: str
    at: float


class LogAxis:
    """A logarithmic axis that covers some positive values and lies from `start` to `end`.

    Its ticks are at least `least_gap` apart if two of them can be.
    """

    def __init__(
        self,
        values: Iterable[float],
        start: float,
        end: float,
        text: Callable[[float], str] = "{:g}".format,
        *,
        least_gap: float = 0,
    ) -> None:
        covered = list(values)
        numbers = round_numbers(min(covered), max(covered))
        self._low, self._high = math.log(numbers[0]), math.log(numbers[-1])
        self._start, self._end = start, end
        self.ticks = [Tick(text(number), self.at(number)) for number in self._apart(numbers, least_gap)]

    def _apart(self, numbers: Sequence[float], least_gap: float) -> Sequence[float]:
        """Return the numbers, or those at decades or at every second decade and so on, which have room."""
        decades = [number for number in numbers if math.isclose(number, 10.0 ** round(math.log10(number)))]
        for shown in (numbers, *(decades[::step] for step in range(1, len(decades)))):
            if all(abs(self.at(after) - self.at(before)) >= least_gap for before, after in pairwise(shown)):
                return shown if len(shown) > 1 else [numbers[0], numbers[-1]]
        return [numbers[0], numbers[-1]]

    def at(self, value: float) -> float:
        """Return the position of a value."""
        part = (math.log(value) - self._low) / (self._high - self._low)
        return round(self._start + part * (self._end - self._start), 1)


class LinearAxis:
    """An axis in equal steps, of at least `least_step`, that covers some values and lies from `start` to `end`."""

    def __init__(
        self, values: Iterable[float], start: float, end: float, *, least_step: float = LEAST_STEP
    ) -> None:
        covered = list(values)
        numbers = even_numbers(min(covered), max(covered), least_step)
        self._low, self._high = numbers[0], numbers[-1]
        self._start, self._end = start, end
        decimals = max(len(f"{number:g}".partition(".")[2]) for number in numbers)
        self.ticks = [Tick(f"{number:.{decimals}f}", self.at(number)) for number in numbers]

    def at(self, value: float) -> float:
        """Return the position of a value."""
        part = (value - self._low) / (self._high - self._low)
        return round(self._start + part * (self._end - self._start), 1)


def even_numbers(low: float, high: float, least_step: float = LEAST_STEP) -> list[float]:
    """Return rising round numbers in equal steps that cover the range from `low` to `high`; at least two."""
    width = max(high - low, least_step)
    power = math.floor(math.log10(width / MOST_TICKS))
    steps = (step * 10.0 ** (power + more) for more in range(3) for step in STEPS)
    step = next(step for step in steps if width / step <= MOST_TICKS - 2 and step >= 0.999 * least_step)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def round_numbers(low: float, high: float) -> list[float]:
    """Return from two to `MOST_TICKS` rising round numbers: the first is at most `low`, the last at least `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    fine = [step * 10.0**power for power in range(first, last + 1) for step in STEPS]
    numbers = _covering(fine, low, high)
    apart = 1
    while len(numbers) > MOST_TICKS:
        decades = [10.0**power for power in range(first, last + 1 + apart, apart)]
        numbers, apart = _covering(decades, low, high), apart + 1
    return numbers


def _covering(numbers: Sequence[float], low: float, high: float) -> list[float]:
    """Return the shortest part of rising `numbers` that covers the range from `low` to `high`, at least two."""
    start = max((index for index, number in enumerate(numbers) if number <= low), default=0)
    end = next((index for index, number in enumerate(numbers) if number >= high), len(numbers) - 1)
    return list(numbers[start : max(end, start + 1) + 1])
