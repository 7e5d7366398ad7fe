"""ε against one setting of a scenario, at as many values as time allows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from docvqa_site.calculator.scenario import Scenario
from evaluator.accounting import pld
from evaluator.accounting.comparison import distinct
from evaluator.mechanisms.mechanism import SamplingRule

# A curve has at most 2⁴ pieces.
HALVINGS = 4


@dataclass(frozen=True)
class Curve:
    """ε by PLD at values of a setting from `low` to `high`.

    `points` has, for each value that was computed, ε under the rules that differ; where rules agree, under the first.
    """

    setting: str
    low: float
    high: float
    points: dict[int | float, dict[SamplingRule, float]] = field(default_factory=dict)

    def values(self) -> Iterator[float]:
        """Yield both ends, the middle, the middles of the halves and so on, evenly spaced on a logarithmic axis."""
        yield self.low
        yield self.high
        for halving in range(1, HALVINGS + 1):
            for odd in range(1, 2**halving, 2):
                yield self._between(odd / 2**halving)

    def add(self, scenario: Scenario, value: float) -> None:
        """Compute the point at `value`, unless it is known; a point that can't be accounted is left out."""
        if value in self.points:
            return
        try:
            releases = scenario.with_setting(self.setting, value).releases()
            self.points[value] = {
                rules[0]: pld.epsilon(events, scenario.delta) for events, rules in distinct(releases).items()
            }
        except ValueError:
            return

    def _between(self, part: float) -> float:
        value = self.low * math.exp(part * math.log(self.high / self.low))
        return round(value) if isinstance(self.low, int) else value
