"""Numbers for readers, rounded so that no shown value is better than the true one."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from evaluator.scoring.metrics import cut, score_gain

# Of the ends of intervals of scores.
INTERVAL_DECIMALS = 3
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def rounded_up(value: float, digits: int = 5) -> str:
    """Return an upper bound such as ε with `digits` significant digits: 1.000001 is shown as 1.0001."""
    return _rounded(value, Context(prec=digits, rounding=ROUND_CEILING))


def epsilon_text(value: float) -> str:
    """Return an ε with four decimals, rounded up: 3.99991 is shown as 4.0000, and so is 4."""
    return str(Decimal(repr(value)).quantize(Decimal("0.0001"), ROUND_CEILING))


def percent_up(share: float) -> str:
    """Return a share in percent, rounded up to a tenth: 0.1512 is shown as 15.2%."""
    return f"{math.ceil(round(1000 * share, 6)) / 10:g}%"


def interval_text(low: float, high: float, decimals: int = INTERVAL_DECIMALS) -> str:
    """Return an interval of scores, rounded outward to at most three decimals: 0.8123 to 0.8461 is 0.812–0.847."""
    places = min(decimals, INTERVAL_DECIMALS)
    return f"{outward_low(low, places):.{places}f}–{outward_high(high, places):.{places}f}"


def outward_low(value: float, decimals: int = INTERVAL_DECIMALS) -> float:
    """Return the lower end of an interval of scores, rounded down."""
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_FLOOR))


def outward_high(value: float, decimals: int = INTERVAL_DECIMALS) -> float:
    """Return the upper end of an interval of scores, rounded up."""
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING))


def gain_note(score: float, other: float, decimals: int) -> str:
    """Return what to say beside `score_gain` where it isn't the difference of the scores as pages show them."""
    shown = Decimal(cut(score, decimals)) - Decimal(cut(other, decimals))
    return "" if shown == score_gain(score, other, decimals) else "computed before truncation"


def power_of_ten(value: float) -> str:
    """Return a small number such as δ by its power of ten, where it is one: 1e-05 is shown as 10⁻⁵."""
    mantissa, _, exponent = f"{value:e}".partition("e")
    power = "10" + str(int(exponent)).translate(SUPERSCRIPTS)
    factor = f"{float(mantissa):g}"
    return power if factor == "1" else f"{factor}\xa0·\xa0{power}"


def _rounded(value: float, context: Context) -> str:
    return f"{float(context.create_decimal(repr(value))):g}"
