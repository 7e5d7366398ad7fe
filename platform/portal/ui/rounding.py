"""Numbers for readers, rounded so that no shown value is better than the true one."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def rounded_up(value: float, digits: int = 5) -> str:
    """Return an upper bound such as ε with `digits` significant digits: 1.000001 is shown as 1.0001."""
    return _rounded(value, Context(prec=digits, rounding=ROUND_CEILING))


def rounded_down(value: float, digits: int = 4) -> str:
    """Return a score with `digits` significant digits: 0.82419 is shown as 0.8241."""
    return _rounded(value, Context(prec=digits, rounding=ROUND_FLOOR))


def _rounded(value: float, context: Context) -> str:
    return f"{float(context.create_decimal(repr(value))):g}"
