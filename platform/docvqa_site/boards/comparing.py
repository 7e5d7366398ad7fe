"""What a comparison says of two values, in words."""

from decimal import Decimal

from django.utils.safestring import SafeString

from docvqa_site.boards.uncertainty import difference
from docvqa_site.ui.markup import markup
from evaluator.messages.results import RunResults

MINUS = "−"


def score_difference(first: RunResults, second: RunResults) -> SafeString:
    """Return by how much the first score is higher, and where the difference lies; empty unless both are known."""
    if first.anls is None or second.anls is None:
        return SafeString("")
    low, high = difference((first.anls_low, first.anls_high), (second.anls_low, second.anls_high))
    value = Decimal(repr(first.anls)) - Decimal(repr(second.anls))
    return markup(
        '{}<div class="muted small">{} to {}: {}</div>',
        _signed(f"{value:+.{min(first.decimals, second.decimals)}f}"),
        _signed(f"{low:+.3f}"),
        _signed(f"{high:+.3f}"),
        _verdict(low, high),
    )


def _verdict(low: float, high: float) -> str:
    if low > 0:
        return "higher"
    return "lower" if high < 0 else "difference may be 0"


def _signed(number: str) -> str:
    """Return a number with the sign that is as wide as a plus."""
    return number.replace("-", MINUS)


def bytes_in_words(first: int | None, second: int | None) -> str:
    """Return how many times as many bytes the first is, in words; empty where one is missing or nothing."""
    if not first or not second:
        return ""
    return "the same" if first == second else f"{first / second:.3g} times as many"
