"""The official ε: by privacy loss distributions, or by Rényi divergences where those give none.

Guarantee: an upper bound, since either is one. A privacy loss distribution counts rounding errors as infinite loss, so
it gives no ε for a δ below them, of about 10⁻¹³ and more after many rounds. Rényi divergences know no such limit.
Wherever privacy loss distributions give an ε it is taken as it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.accounting import pld
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.events import Event, UnsupportedError


@dataclass(frozen=True)
class AccountedBound:
    """An upper bound on ε, infinite where there is none, and the accountant that gave it."""

    epsilon: float
    accountant: Accountant


def bound(events: Sequence[Event], delta: float, accountant: Accountant = Accountant.PLD) -> AccountedBound:
    """Return the bound on ε at δ of the composition of `events` by an accountant, or by the one that stands in for it.

    Raises:
        ValueError: δ is not in (0, 1), or the events don't compose.
    """
    if accountant is Accountant.PLD and math.isfinite(epsilon := pld.epsilon(events, delta)):
        return AccountedBound(epsilon, Accountant.PLD)
    # Imported here: dp-accounting takes a second to load, and the trainers hardly ever need it.
    from evaluator.accounting import rdp

    try:
        return AccountedBound(rdp.epsilon(events, delta), Accountant.RDP)
    except UnsupportedError:
        return AccountedBound(math.inf, accountant)


def epsilon(events: Sequence[Event], delta: float) -> float:
    """Return the official ε at δ of the composition of `events`, infinite where neither accountant gives one.

    Raises:
        ValueError: δ is not in (0, 1), or the events don't compose.
    """
    return bound(events, delta).epsilon
