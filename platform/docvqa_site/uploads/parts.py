"""The parts that a file is cut into."""

from collections.abc import Iterable
from dataclasses import dataclass

# The limit of S3.
MAX_PARTS = 10_000


@dataclass(frozen=True)
class Part:
    """One part of a file, counted from 1; `sha256` in lower-case hex, empty where it isn't known."""

    number: int
    size_bytes: int
    sha256: str


def part_size_bytes(size_bytes: int, smallest: int) -> int:
    """Return the size of every part but the last: `smallest`, doubled until a file has `MAX_PARTS` parts at most."""
    size = smallest
    while size * MAX_PARTS < size_bytes:
        size *= 2
    return size


def missing_parts(sizes: list[int], stored: Iterable[Part]) -> list[int]:
    """Return the numbers of the parts, of the given sizes from part 1 on, that aren't stored in that size."""
    stored_sizes = {part.number: part.size_bytes for part in stored}
    return [number for number, size in enumerate(sizes, 1) if stored_sizes.get(number) != size]


def as_ranges(numbers: Iterable[int]) -> str:
    """Return increasing `numbers` for people: 1–3, 7."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("–".join(map(str, span)) for span in ranges)
