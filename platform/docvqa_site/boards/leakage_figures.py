"""What attacks reached on a run, figure by figure, each beside the most that ε allows."""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.safestring import SafeString

from docvqa_site.ui.markup import markup
from docvqa_site.ui.rounding import percent_up
from evaluator.messages.leakage import Interval
from evaluator.messages.results import RunResults

# The figures whose largest possible value follows from ε: fields of `Leakage`, their names, and for a true positive
# rate its false positive rate.
FIGURES = {
    "balanced_accuracy": ("Balanced accuracy", None),
    "tpr_at_1_percent": ("TPR at 1% FPR", 0.01),
    "tpr_at_10_percent": ("TPR at 10% FPR", 0.1),
}
BELOW = ' <div class="muted small">{}</div>'
ABOVE = '<div><span class="badge badge-flagged">above maximum</span></div>'


@dataclass(frozen=True)
class Figure:
    """What an attack reached on a run, from 0 to 1.

    Attributes:
        name: What it is, at the run's ε.
        value: None where nothing significant was found.
        interval: None where no value was found, or where it was measured before intervals were stated.
        bound: The most that ε allows; None where it isn't known.
    """

    name: str
    value: float | None
    interval: Interval | None
    bound: float | None

    @property
    def is_above(self) -> bool:
        """Whether the value is above its bound, which may be chance."""
        return self.value is not None and self.bound is not None and self.value > self.bound

    @property
    def excludes_bound(self) -> bool:
        """Whether even the lower end of the interval is above the bound."""
        return self.interval is not None and self.bound is not None and self.interval[0] > self.bound

    @property
    def interval_text(self) -> str:
        """The interval, in percent; empty where there is none."""
        return "" if self.interval is None else range_text(self.interval, percent_up)

    @property
    def bound_text(self) -> str:
        """The bound as the page of evidence shows it; empty where there is none."""
        return "" if self.bound is None else percent_up(self.bound)

    @property
    def value_text(self) -> str:
        """The value as pages show it."""
        return "n.s." if self.value is None else percent_up(self.value)

    @property
    def cell(self) -> SafeString:
        """The figure with its interval and its bound."""
        most = f"at most {self.bound_text}" if self.bound_text else ""
        below = [markup(BELOW, line) for line in (self.interval_text, most) if line]
        return markup(
            "{}{}", self.value_text, SafeString("".join(below) + (ABOVE if self.excludes_bound else ""))
        )


def figures_of(results: RunResults) -> list[Figure]:
    """Return what an attack reached on a run, beside the most that its ε allows; nothing where none was tried."""
    leakage = results.leakage
    if leakage is None:
        return []
    allowed: dict[float | None, float] = {}
    if bounds := results.membership:
        allowed = {rate.false_positive_rate: rate.at_most for rate in bounds.true_positive_rates}
        allowed[None] = bounds.balanced_accuracy
    return [
        Figure(
            name,
            getattr(leakage, field),
            getattr(leakage, f"{field}_interval"),
            allowed.get(rate),
        )
        for field, (name, rate) in FIGURES.items()
    ]


def range_text(interval: Interval, text: Callable[[float], str]) -> str:
    """Return an interval, its ends as `text` shows them."""
    return "–".join(map(text, interval))
