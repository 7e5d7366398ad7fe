"""What a private run guarantees, how much of it is spent, and how many rounds fit into a budget.

ε is the official accountant's, as the workers recompute it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from evaluator.accounting import pld
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Event, UnsupportedError
from evaluator.mechanisms.units import PrivacyUnit

BUDGET_ROUNDING = 1e-9  # relative: what a budget may seem exceeded by where σ was computed for it


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy of a run of equal rounds.

    Attributes:
        unit: Whose presence is hidden.
        released: What so many rounds release.
        seen_by_server: Whether the server's view counts, not only what it publishes. A round that was interrupted is
            then spent as well, since messages of it, or their sum, may have arrived.
        budget: ε that no round may exceed; None where none was set.
    """

    unit: PrivacyUnit
    delta: float
    released: Callable[[int], list[Event]]
    seen_by_server: bool = False
    budget: float | None = None

    def epsilon(self, rounds: int) -> float:
        """ε of the first `rounds` rounds; 0 for none.

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
            ProblemError: (`E_PRIVACY_BUDGET`)
        """
        if self.budget is None:
            return
        if (epsilon := self.epsilon(round_number)) > self.budget * (1 + BUDGET_ROUNDING):
            raise _over(self.budget, epsilon, f"round {round_number}")

    @cached_property
    def _known(self) -> dict[int, float]:
        return {0: 0.0}


def rounds_within(budget: float, delta: float, released: Callable[[int], list[Event]], at_most: int) -> int:
    """The most rounds, up to `at_most`, whose ε is within `budget`.

    Raises:
        ProblemError: (`E_PRIVACY_BUDGET`) Not even one is; (`E_CONFIGURATION`) the accountant doesn't cover them.
    """
    with accounting_problems():
        low, high = 0, at_most + 1  # `low` rounds fit, `high` don't or aren't wanted
        while high - low > 1:
            middle = (low + high) // 2
            if pld.epsilon(released(middle), delta) <= budget:
                low = middle
            else:
                high = middle
        if low == 0:
            raise _over(budget, pld.epsilon(released(1), delta), "round 1")
    return low


def spent(events: Sequence[Event], delta: float) -> float:
    """ε of `events`; raises UnsupportedError where no finite one holds."""
    bound = pld.epsilon(events, delta)
    if math.isinf(bound):
        raise UnsupportedError(f"no finite ε holds at δ = {delta:g}")
    return bound


@contextmanager
def accounting_problems() -> Iterator[None]:
    """What accountants and records can't cover is a problem of the settings (`E_CONFIGURATION`)."""
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
    """The first of the values that `error` is about, and what is wrong with it, in a line."""
    detail = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['input']!r}. {detail['msg']}"


def _over(budget: float, epsilon: float, where: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.PRIVACY_BUDGET, where=where, expected=f"ε at most {budget:g}", found=f"{epsilon:.4g}"
    )
