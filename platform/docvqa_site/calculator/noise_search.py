"""The smallest noise for a budget, in few steps: each costs as much as an answer for given noise.

The guarantee is that of `evaluator.accounting.calibration`: the official accountant has computed ε for the noise that
is returned, and it doesn't exceed the budget.
"""

import math
import time
from dataclasses import dataclass

from docvqa_site.calculator.scenario import Scenario
from evaluator.accounting import pld
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.values import MAX_NOISE_MULTIPLIER, MIN_NOISE_MULTIPLIER

# By how much, in ln ε, the result may be below the budget.
TOLERANCE = 6e-5
MOST_STEPS = 60
# In logarithms, ε falls about as fast as the noise rises.
SLOPE, FLATTEST, LONGEST_STEP = -1.0, -0.05, math.log(1e4)
# ε is counted as finite, and positive, for its logarithm.
LARGEST = 1e12


class TooLongError(ValueError):
    """The search takes more computing than a page may."""

    def __init__(self) -> None:
        super().__init__(
            "the search for the noise takes more than a second of computing; run `pfl privacy noise` on your machine"
        )


@dataclass
class NoiseSearch:
    """A search in logarithms of the noise multiplier, which ends with `TooLongError` at `deadline_s` of thread time."""

    scenario: Scenario
    rule: SamplingRule
    target: float
    deadline_s: float

    def __post_init__(self) -> None:
        scale = self.scenario.with_setting("noise_multiplier", 1).mechanism.effective_noise_multiplier()
        # Rounding must not carry the noise out of the accountants' range.
        self.least = math.log(MIN_NOISE_MULTIPLIER / scale) + 1e-9
        self.most = math.log(MAX_NOISE_MULTIPLIER / scale) - 1e-9

    def smallest(self, guess: float = 1.0) -> float:
        """Return the noise multiplier. Raises `ValueError` if none is enough, `TooLongError` included."""
        place, slope = min(max(math.log(guess), self.least), self.most), SLOPE
        excess = self._excess(place)
        for _ in range(MOST_STEPS):
            if -TOLERANCE <= excess <= 0 or (excess < 0 and place == self.least):
                return math.exp(place)
            if excess > 0 and place == self.most:
                raise ValueError(
                    f"no noise multiplier up to {MAX_NOISE_MULTIPLIER:g} reaches ε = {self.target:g}"
                )
            step = -(excess + TOLERANCE / 2) / slope
            following = place + min(max(step, -LONGEST_STEP), LONGEST_STEP)
            following = min(max(following, self.least), self.most)
            found = self._excess(following)
            slope = min((found - excess) / (following - place), FLATTEST)
            place, excess = following, found
        raise TooLongError

    def _excess(self, place: float) -> float:
        """Return ln(ε/target)."""
        epsilon = self._epsilon(place)
        if math.isinf(epsilon) and math.isinf(self._epsilon(self.most)):
            raise ValueError(
                f"no finite ε holds at δ = {self.scenario.delta:g}, whatever the noise; choose a larger δ"
            )
        return math.log(min(max(epsilon, 1 / LARGEST), LARGEST) / self.target)

    def _epsilon(self, place: float) -> float:
        if time.thread_time() > self.deadline_s:
            raise TooLongError
        scenario = self.scenario.with_setting("noise_multiplier", math.exp(place))
        return pld.epsilon(scenario.releases()[self.rule], scenario.delta)
