"""Checks that passed, and would have found hardly anything: those whose power is near the limit of none at all."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from evaluator.messages.jobs import Check, CheckStatus

# A check has hardly any power from this share of its limit on, beyond which it has none.
NEAR = 0.9
HARDLY_ANY_POWER = "hardly any power"
HARDLY_ANY_POWER_MEANS = f"{HARDLY_ANY_POWER} (only an extreme deviation would have been found)"


@dataclass(frozen=True)
class StatedPower:
    """How a check states what it would have found.

    Attributes:
        words: Around the number, which is a group.
        missed: What this number lets pass, as a share of what makes the check powerless.
    """

    words: re.Pattern[str]
    missed: Callable[[float], float]


# What makes each powerless is in its meaning: noise of half its size, a whole round's noise, every second coordinate.
STATED = {
    "record.noise_size": StatedPower(
        re.compile(r"would have detected noise below ([\d.]+)% "), lambda percent: (100 - percent) / 50
    ),
    "record.noise_reuse": StatedPower(
        re.compile(r"would have detected the reuse or cancellation of ([\d.]+)% "),
        lambda percent: percent / 100,
    ),
    "record.noise_shape": StatedPower(
        re.compile(r"would have detected missing noise in one coordinate in (\d+)"), lambda number: 2 / number
    ),
}


def has_hardly_any_power(check: Check) -> bool:
    """Return whether a check passed whose own numbers say that it would have missed nearly everything."""
    stated = STATED.get(check.id)
    if stated is None or check.status is not CheckStatus.PASSED:
        return False
    found = stated.words.search(check.found)
    return found is not None and stated.missed(float(found[1])) >= NEAR
