"""The ranking rules, as functions of values.

Every entry becomes a row. Entries that qualify are ranked from 1 on, without gaps; all others follow unranked, those
that missed a rank by least first, each with the reason. No two rows share a rank: of equal results the one that was
submitted earlier comes first.
A value that is missing, infinite or not a number never ranks. Pages of a board are ordered by the database, in
`portal.boards.ordering`, which the tests compare with the functions here.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from evaluator.messages.jobs import Epsilon
from evaluator.messages.results import RunResults
from portal.boards.uncertainty import RankRange
from portal.evaluation.display.results import (
    EPSILON_COLUMNS,
    EpsilonColumn,
    Shortfall,
    column_epsilons,
    disqualification,
    shortfall,
)
from portal.reviews.verdict import ResultStatus


@dataclass(frozen=True)
class Entry:
    """One scored run, with results of which not all is public.

    Attributes:
        results: Without checks, except where they are published.
        proof_url: The page with its privacy proof; empty unless that is public.
        status_reason: Why the result has its status, where reviewers decide on it.
        disqualified_because: The organizers' public reason; empty unless they disqualified the run.
    """

    run: UUID
    method: str
    team: str
    url: str
    submitted_at: datetime
    results: RunResults
    status: ResultStatus = ResultStatus.SCORED
    status_reason: str = ""
    flagged_checks: int = 0
    disqualified_because: str = ""
    is_baseline: bool = False
    is_evaluated_again: bool = False
    team_slug: str = ""
    code_url: str = ""
    paper_url: str = ""
    submission: UUID | None = None
    phase: str = ""
    proof_url: str = ""

    @property
    def epsilons(self) -> list[tuple[EpsilonColumn, Epsilon | None]]:
        """The columns of ε, each with the run's."""
        return list(zip(EPSILON_COLUMNS, column_epsilons(self.results), strict=True))

    @property
    def accountant_name(self) -> str:
        """The accountant with its version, without its precision."""
        return ", ".join(self.results.accountant.split(", ")[:2])


@dataclass(frozen=True)
class Row:
    """An entry with its rank, or with the reason for having none: as a sentence, and in a few signs.

    Attributes:
        ranks: Which ranks it could have, by the uncertainty of the scores; None where nobody has asked.
        was: Its rank a week before, 0 where it had none; None where that isn't known, or nobody has asked.
    """

    entry: Entry
    rank: int | None
    reason: str = ""
    short_reason: str = ""
    ranks: RankRange | None = None
    was: int | None = None


def rank_by_bytes(entries: Iterable[Entry], threshold: float) -> list[Row]:
    """Rank the entries whose ANLS reaches the threshold, the fewest bytes first."""
    return _rank(
        entries,
        lambda entry: rejection(entry, None, threshold),
        lambda entry: entry.results.bytes_total or 0,
        lambda entry: (-_number(entry.results.anls, -math.inf),),
    )


def rank_by_anls(entries: Iterable[Entry], budget: float) -> list[Row]:
    """Rank the entries whose recomputed ε is within the budget, the highest ANLS first."""
    return _rank(
        entries,
        lambda entry: rejection(entry, budget),
        lambda entry: -(entry.results.anls or 0),
        lambda entry: (entry.status is ResultStatus.REJECTED, _number(entry.results.epsilon, math.inf)),
    )


def rejection(entry: Entry, budget: float | None, threshold: float = 0.0) -> Shortfall | None:
    """Return why the entry has no rank on the board of a budget, or on the one by bytes; None if it has one."""
    if disqualified := disqualification(entry.disqualified_because):
        return disqualified
    if entry.status is ResultStatus.REJECTED:
        return Shortfall(entry.status_reason or "proof rejected", "proof rejected")
    return shortfall(entry.results, budget, threshold)


def _rank(
    entries: Iterable[Entry],
    rejection: Callable[[Entry], Shortfall | None],
    value: Callable[[Entry], float],
    distance: Callable[[Entry], tuple[float, ...]],
) -> list[Row]:
    """Rank the entries without a reason for `rejection`, the smallest `value` first.

    The others follow unranked, the smallest `distance` first.
    """

    def age(entry: Entry) -> tuple[datetime, UUID]:
        # The id decides where even the times are equal.
        return entry.submitted_at, entry.run

    judged = [(entry, rejection(entry)) for entry in sorted(entries, key=age)]
    qualified = sorted((entry for entry, reason in judged if not reason), key=value)
    ranked = [Row(entry, rank) for rank, entry in enumerate(qualified, 1)]
    unranked = sorted(
        ((entry, reason) for entry, reason in judged if reason), key=lambda one: distance(one[0])
    )
    return ranked + [Row(entry, None, reason.sentence, reason.short) for entry, reason in unranked]


def _number(value: float | None, missing: float) -> float:
    return value if value is not None and math.isfinite(value) else missing
