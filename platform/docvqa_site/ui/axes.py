"""The axes of plots: which round numbers have ticks, and where a value lies, from 0 at the start to 1 at the end."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

# The steps within a decade at which an axis starts, ends and has its ticks.
STEPS = (1, 2, 5)
# The most ticks of an axis; a longer logarithmic one has ticks at decades, or at every second decade and so on.
MOST_TICKS = 8
LEAST_STEP = 1e-4
# Around the values of an axis that doesn't begin and end with a tick of its own choice.
MARGIN = 0.025
# Between zero, which a logarithmic axis lacks, and its beginning: room for the texts of both ticks.
ZERO_GAP = 0.14

Position = Callable[[float], float]


@dataclass(frozen=True)
class Tick:
    """A value on an axis, as text, and where it lies."""

    text: str
    at: float


@dataclass(frozen=True)
class Axis:
    """A direction of a plot: its title, where a value lies, and its ticks."""

    title: str
    at: Position
    ticks: Sequence[Tick]

    def reversed(self) -> "Axis":
        """Return the axis with its start and end swapped."""
        return Axis(
            self.title,
            lambda value: 1 - self.at(value),
            [Tick(tick.text, 1 - tick.at) for tick in self.ticks],
        )


def linear(title: str, values: Iterable[float], *, least_step: float = LEAST_STEP) -> Axis:
    """Return an axis in equal steps, of at least `least_step`, that covers some values."""
    covered = list(values)
    numbers = even_numbers(min(covered), max(covered), least_step)
    decimals = max(len(f"{number:g}".partition(".")[2]) for number in numbers)
    at = _between(numbers[0], numbers[-1])
    return Axis(title, at, [Tick(f"{number:.{decimals}f}", at(number)) for number in numbers])


def stretch(
    title: str,
    ticks: Sequence[float],
    text: Callable[[float], str],
    ends: tuple[float, float] | None = None,
) -> Axis:
    """Return an axis with given ticks and a margin at both ends.

    Args:
        ends: From where to where it reaches; by default from the first tick to the last, of which there are two.
    """
    inner = _between(*(ends or (ticks[0], ticks[-1])))

    def at(value: float) -> float:
        return MARGIN + (1 - 2 * MARGIN) * inner(value)

    return Axis(title, at, [Tick(text(tick), at(tick)) for tick in ticks])


def categories(title: str, names: Sequence[str]) -> Axis:
    """Return an axis of names, of which the values are their numbers from 0."""

    def at(number: float) -> float:
        return (number + 0.5) / len(names)

    return Axis(title, at, [Tick(name, at(number)) for number, name in enumerate(names)])


def logarithmic(
    title: str,
    values: Iterable[float],
    text: Callable[[float], str] = "{:g}".format,
    *,
    least_gap: float = 0,
) -> Axis:
    """Return a logarithmic axis that covers some values, of which 0 lies near its start, apart from all others.

    Its ticks are at least `least_gap` apart if two of them can be.
    """
    covered = set(values)
    numbers = round_numbers(min(covered - {0} or {1}), max(covered - {0} or {1}))
    start = ZERO_GAP if 0 in covered else 0.0
    inner = _between(math.log(numbers[0]), math.log(numbers[-1]))

    def at(value: float) -> float:
        return start + (1 - start) * inner(math.log(value)) if value else MARGIN

    zero = [Tick(text(0), MARGIN)] if start else []
    return Axis(title, at, [*zero, *(Tick(text(one), at(one)) for one in _apart(numbers, at, least_gap))])


def _between(low: float, high: float) -> Position:
    return lambda value: (value - low) / (high - low)


def _apart(numbers: Sequence[float], at: Position, least_gap: float) -> Sequence[float]:
    """Return the numbers, or those at decades or at every second decade and so on, which have room."""
    decades = [number for number in numbers if math.isclose(number, 10.0 ** round(math.log10(number)))]
    for shown in (numbers, *(decades[::step] for step in range(1, len(decades)))):
        if len(shown) > 1 and all(at(after) - at(before) >= least_gap for before, after in pairwise(shown)):
            return shown
    return [numbers[0], numbers[-1]]


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
