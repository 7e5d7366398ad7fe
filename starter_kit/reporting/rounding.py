"""Numbers for readers. A bound such as ε is rounded up and a score is cut, so that neither looks better than it is."""

import math
from decimal import ROUND_CEILING, Context, Decimal

GIGABYTE = 10**9
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def epsilon_text(epsilon: float | None) -> str:
    """Return ε with five significant digits, rounded up; ∞ where there is none."""
    if epsilon is None:
        return "∞"
    rounded = Context(prec=5, rounding=ROUND_CEILING).create_decimal(repr(epsilon))
    return f"{float(rounded):#.5g}"


def rounded_up(bound: float, decimals: int) -> str:
    """Return a bound such as ε with so many decimals, rounded up; `inf` where it is infinite."""
    if math.isinf(bound):
        return "inf"
    return str(Decimal(repr(bound)).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING))


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with so many significant digits and without exponent: 0.00120, 1.20, 1230."""
    rounded = Decimal(f"{value:.{digits - 1}e}")
    return f"{rounded:f}" if rounded else "0"


def decimal_unit(size_bytes: float) -> tuple[int, str]:
    """Return the decimal unit in which `size_bytes` is from 1 to 1000, as its number of bytes and its name."""
    power = 0
    while size_bytes >= 1000 ** (power + 1) and power < len(UNITS) - 1:
        power += 1
    return int(1000**power), UNITS[power]


def size_text(size_bytes: int) -> str:
    """Return a size in the unit that fits, such as 12.3 MB."""
    number, unit = decimal_unit(size_bytes)
    return f"{size_bytes} B" if number == 1 else f"{significant(size_bytes / number)} {unit}"
