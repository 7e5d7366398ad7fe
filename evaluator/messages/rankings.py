"""How the runs of a track rank, as data: the site orders its boards by these rules, and sends them to programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from evaluator.messages.base import Message

# Values by name; None where a limit doesn't apply, which no rule of that track then names.
Limits = Mapping[str, float | None]
# The limit that each board has for itself: its ε. All others are fields of the track.
BUDGET = "budget"
# `RunResults.counting` of a run whose checkpoint the evaluator computed from its messages.
COUNTED = "counted"


@dataclass(frozen=True)
class Unmet:
    """The first condition that a run doesn't meet.

    Attributes:
        result: The name of the result.
        value: None where the result is missing; then there is no limit either.
        limit: The name of the limit, and its value.
        is_least: Whether the result is below the limit, and not above.
    """

    result: str
    value: float | None = None
    limit: str = ""
    bound: float = 0.0
    is_least: bool = False


class RankingRule(Message):
    """Which results order the runs, and which conditions a rank takes. Results are named as in `RunResults`.

    Every result that is named has to be there: one that is missing, infinite or not a number never ranks.

    Attributes:
        key: How tracks and messages name the rule.
        order: The result that decides first, then those that break ties; the smallest value comes first, or the
            largest where a minus precedes the name. The earlier submission comes first where all are equal.
        at_least: By result, the name of the limit that it must reach.
        at_most: By result, the name of the limit that it must not exceed.
        is_accounted: Whether ε is recomputed from a training record, which every run then needs.
        confirmed_from: The name of the limit that says from which trust level on an unbound run ranks, of which no
            check shows that its recorded sums led to its checkpoint (`RunResults.unbound`); empty where no run is
            unbound.
        ranks_bytes: Whether bytes decide first. Then a phase may rank counted bytes alone (`RunResults.counting`), and
            a log with a flagged check (`RunResults.log_flag`) ranks only once an organizer has accepted it.
    """

    key: str
    order: tuple[str, ...]
    at_least: dict[str, str] = {}
    at_most: dict[str, str] = {}
    is_accounted: bool = False
    confirmed_from: str = ""
    ranks_bytes: bool = False

    @cached_property
    def terms(self) -> list[tuple[str, bool]]:
        """The results of `order`, each with whether its largest value comes first."""
        return [(term.lstrip("-"), term.startswith("-")) for term in self.order]

    @cached_property
    def limits(self) -> list[tuple[str, str, bool]]:
        """Every condition: the result, its limit, and whether that is the least allowed value."""
        least = [(result, limit, True) for result, limit in self.at_least.items()]
        return least + [(result, limit, False) for result, limit in self.at_most.items()]

    @property
    def fields(self) -> list[str]:
        """The limits that are fields of a track."""
        named = [limit for _, limit, _ in self.limits if limit != BUDGET]
        return [*named, *filter(None, [self.confirmed_from])]

    @cached_property
    def needs(self) -> list[str]:
        """The results without which a run has no rank."""
        return sorted({name for name, _ in self.terms} | self.at_least.keys() | self.at_most.keys())

    def unmet(self, results: Any, limits: Limits) -> Unmet | None:
        """Return what keeps a run from a rank; None if nothing does.

        Args:
            results: Its `RunResults`, with scores as they are shown.
            limits: The values of all limits, by name.
        """
        return next(self._unmet(results, limits), None)

    def is_unconfirmed(self, results: Any, limits: Limits) -> bool:
        """Return whether the run is unbound, and no examination of a level that suffices has confirmed it."""
        if not self.confirmed_from or not results.unbound:
            return False
        level, least = results.trust_level, limits[self.confirmed_from]
        return (level or 0) < (least or 0)

    def is_uncounted(self, results: Any, *, requires_counted: bool) -> bool:
        """Return whether the run's bytes are declared, where its phase ranks counted bytes alone."""
        return self.ranks_bytes and requires_counted and results.counting != COUNTED

    def is_doubtful(self, results: Any, *, is_log_accepted: bool) -> bool:
        """Return whether a check of the log flagged the run, and no organizer has accepted the log."""
        return self.ranks_bytes and bool(results.log_flag) and not is_log_accepted

    def key_of(self, results: Any) -> tuple[float, ...]:
        """Return what to sort a run by that meets every condition; the smallest comes first."""
        return tuple(_signed(getattr(results, name), is_falling) for name, is_falling in self.terms)

    def distance(self, results: Any) -> tuple[float, ...]:
        """Return what to sort a run by that meets not every condition; the smallest missed a rank by least."""
        return tuple(_signed(getattr(results, name), is_least) for name, _, is_least in self.limits)

    def _unmet(self, results: Any, limits: Limits) -> Iterator[Unmet]:
        for name in self.needs:
            if not _is_number(getattr(results, name)):
                yield Unmet(name)
        for name, limit, is_least in self.limits:
            value, bound = getattr(results, name), limits[limit]
            if bound is None:
                raise ValueError(f"the limit {limit} has no value")
            if value < bound if is_least else value > bound:
                yield Unmet(name, value, limit, bound, is_least)


def _signed(value: float | None, is_falling: bool) -> float:
    """Return a number by which the best value comes first, and a missing one last."""
    if value is None or not isfinite(value):
        return float("inf")
    # A whole number stays one: floating-point numbers can't tell large byte counts apart.
    return -value if is_falling else value


def _is_number(value: float | None) -> bool:
    return value is not None and isfinite(value)


FEWEST_BYTES = RankingRule(
    key="bytes", order=("bytes_total", "-anls"), at_least={"anls": "anls_threshold"}, ranks_bytes=True
)
BEST_ANLS_AT_BUDGET = RankingRule(
    key="anls",
    order=("-anls", "bytes_total"),
    at_most={"epsilon": BUDGET},
    is_accounted=True,
    confirmed_from="unbound_level",
)
BEST_ANLS = RankingRule(key="score", order=("-anls", "bytes_total"))
RULES = {rule.key: rule for rule in (FEWEST_BYTES, BEST_ANLS_AT_BUDGET, BEST_ANLS)}
