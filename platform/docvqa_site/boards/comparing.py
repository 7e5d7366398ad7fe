"""What a comparison says of two values, in words."""

from django.utils.safestring import SafeString

from docvqa_site.boards.uncertainty import JOINT_LEVEL, Ends, difference
from docvqa_site.challenge.rankings import MANY_TIMES
from docvqa_site.ui.markup import markup
from docvqa_site.ui.rounding import INTERVAL_DECIMALS, gain_note, outward_high, outward_low
from evaluator.messages.results import RunResults
from evaluator.scoring.metrics import score_gain

MINUS = "−"


# What an interval of a difference is.
PAIRED = "95%, paired"
UNPAIRED = f"at least {JOINT_LEVEL:.0%}, not paired"


def score_difference(first: RunResults, second: RunResults, paired: Ends | None = None) -> SafeString:
    """Return by how much the first score is higher, and where the difference lies; empty unless both are known.

    Args:
        paired: The paired interval of the difference; without it, that of two scores of which nothing is known together
            is shown.
    """
    if first.anls is None or second.anls is None:
        return SafeString("")
    low, high = _ends(first, second, paired)
    decimals = min(first.decimals, second.decimals)
    value = score_gain(first.anls, second.anls, decimals)
    places = min(decimals, INTERVAL_DECIMALS)
    note = gain_note(first.anls, second.anls, decimals)
    return markup(
        '{}{}<div class="muted small">{} to {}: {}</div><div class="muted small">{}</div>',
        _signed(f"{value:+}"),
        markup(' <div class="muted small">{}</div>', note) if note else "",
        _signed(f"{outward_low(low, places):+.{places}f}"),
        _signed(f"{outward_high(high, places):+.{places}f}"),
        _verdict(low, high),
        PAIRED if paired else UNPAIRED,
    )


def _ends(first: RunResults, second: RunResults, paired: Ends | None) -> Ends:
    """Return the interval of the difference, rounded outward."""
    if paired is None:
        return difference((first.anls_low, first.anls_high), (second.anls_low, second.anls_high))
    return outward_low(paired[0]), outward_high(paired[1])


def _verdict(low: float, high: float) -> str:
    if low > 0:
        return "A is higher"
    return "B is higher" if high < 0 else "difference may be 0"


def _signed(number: str) -> str:
    """Return a number with the sign that is as wide as a plus."""
    return number.replace("-", MINUS)


def bytes_in_words(first: int | None, second: int | None) -> str:
    """Return which of two methods, A or B, has more bytes by what factor; empty where one is missing or nothing."""
    if not first or not second:
        return ""
    if first == second:
        return "the same"
    more, factor = ("A", first / second) if first > second else ("B", second / first)
    return f"{more}: {factor:,.3g}× as many" if factor < MANY_TIMES else f"{more}: {factor:,.0f}× as many"
