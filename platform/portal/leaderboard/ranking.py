"""The ranking rules, as functions of values.

Every entry becomes a row. Entries that qualify are ranked from 1 on, without gaps; all others follow unranked,
each with the reason. No two rows share a rank: of equal results the one that was submitted earlier stands first.
A value that is missing, infinite or not a number never ranks.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeGuard
from uuid import UUID

from evaluator.contracts import TrustLevel
from portal.ui.rounding import rounded_down, rounded_up


class Standing(StrEnum):
    """How far a result can be relied on; `scored` where no proof is asked for."""

    SCORED = "scored"
    PROVISIONAL = "provisional"
    VERIFIED = "verified"
    WITHHELD = "withheld"


@dataclass(frozen=True)
class Entry:
    """One scored run.

    Attributes:
        anls: In [0, 1], as is `accuracy`.
        bytes_total: Sent in both directions during the whole training.
        epsilon: Recomputed, the one that decides, as `decides` says: `two_stage`, `product` or `rdp`.
        epsilon_two_stage: By PLD, as is `epsilon_product`.
        epsilon_rdp: By Rényi DP under the sampling rule that decides.
        flagged: Number of checks that the reviewers are asked to look at.
        standing_reason: Why a withheld result is withheld.
    """

    run: UUID
    method: str
    team: str
    url: str
    submitted_at: datetime
    anls: float | None
    accuracy: float | None = None
    bytes_total: int | None = None
    epsilon: float | None = None
    epsilon_two_stage: float | None = None
    epsilon_product: float | None = None
    epsilon_rdp: float | None = None
    decides: str = ""
    accountant: str = ""
    trust: TrustLevel | None = None
    flagged: int = 0
    standing: Standing = Standing.SCORED
    standing_reason: str = ""
    is_baseline: bool = False

    @property
    def accountant_name(self) -> str:
        """With its version, without its precision."""
        return ", ".join(self.accountant.split(", ")[:2])


@dataclass(frozen=True)
class Row:
    """An entry with its rank, or with the reason for having none."""

    entry: Entry
    rank: int | None
    reason: str = ""


def rank_by_bytes(entries: Iterable[Entry], threshold: float) -> list[Row]:
    """Fewest bytes first, among entries whose ANLS reaches the threshold."""

    def rejection(entry: Entry) -> str:
        if entry.standing is Standing.WITHHELD:
            return entry.standing_reason or "the result is withheld"
        if not _is_number(entry.anls):
            return "ANLS is missing"
        if not _is_number(entry.bytes_total):
            return "the number of bytes is missing"
        if entry.anls < threshold:
            return f"ANLS {rounded_down(entry.anls)} is below the threshold {threshold:g}"
        return ""

    return _rank(entries, rejection, lambda entry: entry.bytes_total or 0)


def rank_by_anls(entries: Iterable[Entry], budget: float) -> list[Row]:
    """Highest ANLS first, among entries whose recomputed ε is within the budget."""

    def rejection(entry: Entry) -> str:
        if entry.standing is Standing.WITHHELD:
            return entry.standing_reason or "the result is withheld"
        if not _is_number(entry.anls):
            return "ANLS is missing"
        if not _is_number(entry.epsilon):
            return "ε is missing"
        if entry.epsilon > budget:
            return f"recomputed ε = {rounded_up(entry.epsilon)} exceeds the budget {budget:g}"
        return ""

    return _rank(entries, rejection, lambda entry: -(entry.anls or 0))


def _rank(
    entries: Iterable[Entry], rejection: Callable[[Entry], str], value: Callable[[Entry], float]
) -> list[Row]:
    """`rejection` says why an entry has no rank, if it has none; the smallest `value` comes first."""

    def age(entry: Entry) -> tuple[datetime, UUID]:
        return entry.submitted_at, entry.run  # the id decides where even the times are equal

    judged = [(entry, rejection(entry)) for entry in sorted(entries, key=age)]
    qualified = sorted((entry for entry, reason in judged if not reason), key=value)
    ranked = [Row(entry, rank) for rank, entry in enumerate(qualified, 1)]
    return ranked + [Row(entry, None, reason) for entry, reason in judged if reason]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
