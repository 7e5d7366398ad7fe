"""The privacy guarantee of a run, the ε that it has spent, and how many rounds fit into a budget.

ε is that of the official accountant, as the workers recompute it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from evaluator.accounting import official
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Event, UnsupportedError
from evaluator.mechanisms.units import PrivacyUnit

# The relative amount by which ε may exceed a budget through rounding, where σ was computed for the budget.
BUDGET_ROUNDING = 1e-9


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy of a run of equal rounds.

    Attributes:
        unit: The privacy unit, whose presence is hidden.
        delta: δ, at which ε holds.
        released: Returns the events that a number of rounds releases.
        seen_by_server: Whether the server's view counts, not only what it publishes. A round that was interrupted is
            then counted as well, since messages of it, or their sum, may have arrived.
        budget: ε that no round may exceed; None where none was set.
    """

    unit: PrivacyUnit
    delta: float
    released: Callable[[int], list[Event]]
    seen_by_server: bool = False
    budget: float | None = None

    def epsilon(self, rounds: int) -> float:
        """Return ε of the first `rounds` rounds, 0 for none.

        Raises:
            ProblemError: (`E_CONFIGURATION`) No finite ε holds.
        """
        if rounds not in self._known:
            with accounting_problems():
                self._known[rounds] = spent(self.released(rounds), self.delta)
        return self._known[rounds]

    def check_before(self, round_number: int) -> None:
        """Reject a round that would exceed the budget, before it begins.

        Raises:
            ProblemError: (`E_PRIVACY_BUDGET`) ε after the round would be over the budget.
        """
        if self.budget is None:
            return
        if (epsilon := self.epsilon(round_number)) > self.budget * (1 + BUDGET_ROUNDING):
            raise _over(self.budget, epsilon, f"round {round_number}")

    @cached_property
    def _known(self) -> dict[int, float]:
        return {0: 0.0}


def rounds_within(budget: float, delta: float, released: Callable[[int], list[Event]], at_most: int) -> int:
    """Return the largest number of rounds, up to `at_most`, whose ε is within `budget`.

    Raises:
        ProblemError: (`E_PRIVACY_BUDGET`) Not even one round is; (`E_CONFIGURATION`) the accountant doesn't cover them.
    """
    with accounting_problems():
        # `low` rounds fit; `high` rounds don't, or are more than `at_most`.
        low, high = 0, at_most + 1
        while high - low > 1:
            middle = (low + high) // 2
            if official.epsilon(released(middle), delta) <= budget:
                low = middle
            else:
                high = middle
        if low == 0:
            raise _over(budget, official.epsilon(released(1), delta), "round 1")
    return low


def spent(events: Sequence[Event], delta: float) -> float:
    """Return ε of `events`.

    Raises:
        UnsupportedError: No finite ε holds.
    """
    bound = official.epsilon(events, delta)
    if math.isinf(bound):
        raise UnsupportedError(f"no finite ε holds at δ = {delta:g}")
    return bound


@contextmanager
def accounting_problems() -> Iterator[None]:
    """Inside the block, make what accountants and records can't cover a problem of the settings.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A ValueError was raised in the block.
    """
    try:
        yield
    except ValueError as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="the privacy settings",
            expected="rates, rounds and noise that the accountants cover",
            found=first_problem(error)
            if isinstance(error, ValidationError)
            else " ".join(str(error).split()),
        ) from error


def first_problem(error: ValidationError) -> str:
    """Describe in one line the first value that `error` is about, if it is about one, and what is wrong with it."""
    detail = error.errors(include_url=False)[0]
    if not detail["loc"]:
        return detail["msg"]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['input']!r}. {detail['msg']}"


def _over(budget: float, epsilon: float, where: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.PRIVACY_BUDGET, where=where, expected=f"ε at most {budget:g}", found=f"{epsilon:.4g}"
    )
