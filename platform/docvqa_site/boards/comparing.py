"""What a comparison says of two values, in words."""

from decimal import Decimal

from django.utils.safestring import SafeString

from docvqa_site.boards.uncertainty import JOINT_LEVEL, Ends, difference
from docvqa_site.challenge.rankings import MANY_TIMES
from docvqa_site.evaluation.display.results import leakage_text
from docvqa_site.ui.markup import markup
from docvqa_site.ui.rounding import INTERVAL_DECIMALS, gain_note, outward_high, outward_low
from evaluator.messages.leakage import Leakage
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
    # An end that is shown as 0 would contradict that one score is higher.
    if 0 < low < 10**-places or -(10**-places) < high < 0:
        places = INTERVAL_DECIMALS
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


def ranks_in_words(first: RunResults, second: RunResults, paired: Ends | None) -> str:
    """Return that the paired interval separates two runs, whose ranks their own intervals leave open; else nothing."""
    if paired is None:
        return ""
    own = _ends(first, second, None)
    is_open, low, high = own[0] <= 0 <= own[1], *_ends(first, second, paired)
    return f"paired, {_verdict(low, high)}" if is_open and not low <= 0 <= high else ""


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
    return f"{more} needs {factor:{',.3g' if factor < MANY_TIMES else ',.0f'}}× as many bytes"


def accuracy_in_words(first: RunResults, second: RunResults) -> str:
    """Return by how much the accuracy of one of two methods is higher; empty where one is missing."""
    if first.accuracy is None or second.accuracy is None:
        return ""
    decimals = min(first.decimals, second.decimals)
    gain = score_gain(first.accuracy, second.accuracy, decimals)
    return ", ".join(filter(None, [_gain(gain), gain_note(first.accuracy, second.accuracy, decimals)]))


def leakage_in_words(first: Leakage | None, second: Leakage | None) -> str:
    """Return by how much the first of two methods leaks more, if both significantly; empty where it wasn't measured."""
    if first is None or second is None:
        return ""
    if first.auc is None and second.auc is None:
        return "neither is significant"
    if first.auc is None or second.auc is None:
        return f"only {'B' if first.auc is None else 'A'}'s is significant"
    return _gain(Decimal(leakage_text(first)) - Decimal(leakage_text(second)))


def _gain(gain: Decimal) -> str:
    """Return a difference without an interval, of which no verdict follows."""
    return _signed(f"{gain:+}") if gain else "the same"
