"""Numbers of bytes as people write them, such as "1.5 GiB"."""

import re
from decimal import Decimal

# The largest first.
SIZES = {
    "TiB": 1024**4,
    "TB": 1000**4,
    "GiB": 1024**3,
    "GB": 1000**3,
    "MiB": 1024**2,
    "MB": 1000**2,
    "KiB": 1024,
    "kB": 1000,
    "B": 1,
}
SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?i?b)?\s*", re.IGNORECASE)


def bytes_of(text: str) -> int | None:
    """Return the number of bytes that a text such as "1.5 GB" stands for; None if it stands for no whole number."""
    found = SIZE.fullmatch(text)
    units = {name.lower(): size for name, size in SIZES.items()}
    unit = units.get((found[2] or "B").lower()) if found else None
    size = Decimal(found[1]) * unit if found and unit else Decimal("0.5")
    return int(size) if size == int(size) else None


def exact_size(size: int) -> str:
    """Return a number of bytes in the largest unit that gives it exactly in few digits, such as "2 GiB"."""
    name, unit = next((name, unit) for name, unit in SIZES.items() if size >= unit and size * 100 % unit == 0)
    return f"{(Decimal(size) / unit).normalize():f} {name}"
