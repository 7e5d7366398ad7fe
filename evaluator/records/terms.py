"""Comparing the terms of two records of the same settings, which two machines may have computed.

Numbers that follow from others, such as the noise that a target ε needs, are rounded otherwise on another processor.
The tolerance is far above that, and so small that nothing can be hidden below it.
"""

import math
from typing import Any

TOLERANCE = 1e-9


def agree(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same but for the rounding of their numbers."""
    match one, other:
        case float(), float():
            return math.isclose(one, other, rel_tol=TOLERANCE)
        case dict(), dict():
            return one.keys() == other.keys() and all(agree(one[name], other[name]) for name in one)
        case list(), list():
            return len(one) == len(other) and all(map(agree, one, other))
        case _:
            return bool(one == other)
