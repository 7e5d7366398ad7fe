"""What a comparison says of two values, in words."""

from django.utils.safestring import SafeString

from docvqa_site.boards.uncertainty import difference
from docvqa_site.challenge.rankings import MANY_TIMES
from docvqa_site.ui.markup import markup
from docvqa_site.ui.rounding import INTERVAL_DECIMALS, gain_note, outward_high, outward_low
from evaluator.messages.results import RunResults
from evaluator.scoring.metrics import score_gain

MINUS = "−"


def score_difference(first: RunResults, second: RunResults) -> SafeString:
    """Return by how much the first score is higher, and where the difference lies; empty unless both are known."""
    if first.anls is None or second.anls is None:
        return SafeString("")
    low, high = difference((first.anls_low, first.anls_high), (second.anls_low, second.anls_high))
    decimals = min(first.decimals, second.decimals)
    value = score_gain(first.anls, second.anls, decimals)
    places = min(decimals, INTERVAL_DECIMALS)
    note = gain_note(first.anls, second.anls, decimals)
    return markup(
        '{}{}<div class="muted small">{} to {}: {}</div>',
        _signed(f"{value:+}"),
        markup(' <div class="muted small">{}</div>', note) if note else "",
        _signed(f"{outward_low(low, places):+.{places}f}"),
        _signed(f"{outward_high(high, places):+.{places}f}"),
        _verdict(low, high),
    )


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
