"""The parts that a file is cut into."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_PARTS = 10_000  # what S3 takes


@dataclass(frozen=True)
class Part:
    """One part of a file, counted from 1; `sha256` in lower-case hex."""

    number: int
    size_bytes: int
    sha256: str


def part_size_bytes(size_bytes: int, smallest: int) -> int:
    """Size of every part but the last: `smallest`, doubled until a file of `size_bytes` has `MAX_PARTS` at most."""
    size = smallest
    while size * MAX_PARTS < size_bytes:
        size *= 2
    return size


def missing_parts(sizes: list[int], stored: Iterable[Part]) -> list[int]:
    """Numbers of the parts, of the given sizes from part 1 on, that aren't stored in that size."""
    held = {part.number: part.size_bytes for part in stored}
    return [number for number, size in enumerate(sizes, 1) if held.get(number) != size]


def as_ranges(numbers: Iterable[int]) -> str:
    """Increasing `numbers` for people: 1–3, 7."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("–".join(map(str, span)) for span in ranges)
