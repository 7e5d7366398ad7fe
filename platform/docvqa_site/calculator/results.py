"""An answer as the page shows it: rows with verdicts, and plots."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from docvqa_site.ui.axes import logarithmic
from docvqa_site.ui.budgets import budget_text
from docvqa_site.ui.plots import Level, Line, Mark, Plot
from docvqa_site.ui.rounding import epsilon_text, rounded_up
from docvqa_site.ui.templatetags.bounds import bound
from evaluator.mechanisms.mechanism import SamplingRule

# Loading the accountants takes a second.
if TYPE_CHECKING:
    from docvqa_site.calculator.answers import Answer
    from docvqa_site.calculator.curves import Curve
    from evaluator.accounting.comparison import Bound

RULES = {SamplingRule.TWO_STAGE: "two-stage", SamplingRule.PRODUCT: "product"}
AXES = {"rounds": "rounds", "noise_multiplier": "noise multiplier σ"}


@dataclass(frozen=True)
class Row:
    """One bound beside the budget."""

    bound: "Bound"
    budget: float
    decides: bool

    @property
    def rule(self) -> str:
        return _label(self.bound.rules)

    @property
    def is_finite(self) -> bool:
        return self.bound.epsilon is not None and math.isfinite(self.bound.epsilon)

    @property
    def shown(self) -> str:
        """ε as a run's page of evidence shows it, or with more digits where it is small."""
        epsilon = self.bound.epsilon or 0.0
        return max(epsilon_text(epsilon), rounded_up(epsilon), key=len)

    @property
    def is_over(self) -> bool:
        return self.bound.epsilon is not None and self.bound.epsilon > self.budget

    @property
    def difference(self) -> str:
        """The difference between the budget and ε as it is shown, so that the two add up; empty where there is none."""
        if self.bound.epsilon is None or not self.is_finite:
            return ""
        difference = abs(Decimal(repr(self.budget)) - Decimal(self.shown))
        return f"{difference.normalize():f}" if difference else ""


@dataclass(frozen=True)
class Result:
    """An answer beside a budget."""

    answer: "Answer"
    budget: float

    @property
    def rows(self) -> list[Row]:
        """The bounds, the deciding one first: by PLD under the two-stage rule."""
        return [Row(bound, self.budget, decides=index == 0) for index, bound in enumerate(self.answer.bounds)]

    @property
    def found(self) -> list[tuple[str, float]]:
        """The noise that each amplification rule requires, where it was to be computed."""
        return [(RULES[rule], noise) for rule, noise in self.answer.found.items()]

    @property
    def rules_differ(self) -> bool:
        return len(self.answer.bounds[0].rules) == 1

    @property
    def plots(self) -> Iterator[Plot]:
        """A plot of each curve that has a line to draw."""
        for curve in self.answer.curves:
            lines = [line for rules in self._rules() if len((line := _line(curve, rules)).points) > 1]
            if lines:
                here = float(getattr(self.answer.scenario, curve.setting))
                level = Level(self.budget, f"budget, {budget_text(self.budget)}")
                yield _plot(curve.setting, AXES[curve.setting], "ε", lines, level, here)
        yield self._trade_off()

    def _trade_off(self) -> Plot:
        """Return the plot of what the best attack finds, beside guessing."""
        found = self.answer.trade_off
        guessed = [(rate, rate) for rate, _ in found]
        lines = [
            Line("two-stage", found, "best attack, two-stage rule"),
            Line("level", guessed, "guessing"),
        ]
        return _plot("trade-off", "false positive rate", "true positive rate", lines)

    def _rules(self) -> list[tuple[SamplingRule, ...]]:
        return list(dict.fromkeys(bound.rules for bound in self.answer.bounds))


def _line(curve: "Curve", rules: tuple[SamplingRule, ...]) -> Line:
    # A logarithmic axis shows neither 0 nor infinity.
    points = [
        (float(value), curve.points[value][rules[0]])
        for value in sorted(curve.points)
        if 0 < curve.points[value].get(rules[0], 0) < float("inf")
    ]
    return Line(rules[0].replace("_", "-"), points, f"{_label(rules)} rule")


def _plot(
    name: str,
    setting: str,
    quantity: str,
    lines: Sequence[Line],
    level: Level | None = None,
    here: float | None = None,
) -> Plot:
    """Return lines through points of positive values; where x is `here`, each has a mark."""
    columns = [dict(line.points) for line in lines]
    values = [y for line in lines for _, y in line.points]
    settings = sorted({x for line in lines for x, _ in line.points})
    return Plot(
        name=name,
        title=f"{quantity} vs. {setting}",
        x=logarithmic(f"{setting} (log scale)", settings),
        y=logarithmic(f"{quantity} (log scale)", values if level is None else [level.value, *values]),
        lines=lines,
        marks=[Mark(point, line.kind) for line in lines for point in line.points if point[0] == here],
        level=level,
        columns=[setting, *(f"{quantity}, {line.label}" for line in lines)],
        rows=[(f"{x:.5g}", *(bound(column.get(x)) for column in columns)) for x in settings],
    )


def _label(rules: tuple[SamplingRule, ...]) -> str:
    return " and ".join(RULES[rule] for rule in rules)
