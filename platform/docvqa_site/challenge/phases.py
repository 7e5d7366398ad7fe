"""The phases of a track in time, as functions of values: which one runs, and whether the track takes submissions."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docvqa_site.challenge.models import Phase

BEGINNING = datetime.min.replace(tzinfo=UTC)


def in_order(phases: Iterable["Phase"]) -> list["Phase"]:
    """Return the phases, the earliest first."""
    return sorted(phases, key=lambda phase: phase.starts_at or BEGINNING)


def phase_at(phases: Iterable["Phase"], now: datetime) -> "Phase | None":
    """Return the phase that runs now; None between phases, before the first and after the last."""
    return next((phase for phase in phases if phase.has_begun(now) and not phase.has_ended(now)), None)


def nearest_phase(phases: Iterable["Phase"], now: datetime) -> "Phase | None":
    """Return the phase that runs now, else the next one, else the last; None where there is none at all."""
    ordered = in_order(phases)
    ahead = [phase for phase in ordered if not phase.has_ended(now)]
    return next(iter([*ahead, *ordered[-1:]]), None)


def closed_because(phases: Iterable["Phase"], now: datetime, *, paused: bool = False) -> str:
    """Return why a track with these phases takes no submissions now; empty when it does."""
    if paused:
        return "Paused by the organizers."
    phase = nearest_phase(phases, now)
    if phase is None:
        return "No phase is scheduled yet."
    if phase.has_ended(now):
        return f"The deadline was {_in_words(phase.ends_at)}."
    return "" if phase.has_begun(now) else f"Opens on {_in_words(phase.starts_at)}."


def overlap(phases: Iterable["Phase"]) -> str:
    """Return which two of the phases run at the same time, as a sentence; empty where none do."""
    for earlier, later in pairwise(in_order(phases)):
        if earlier.ends_at is None or later.starts_at is None or later.starts_at < earlier.ends_at:
            return f"“{earlier.name}” and “{later.name}” overlap. End one before the next one begins."
    return ""


def _in_words(moment: datetime | None) -> str:
    return f"{moment:%b %-d, %Y, %H:%M} UTC" if moment else "a day that isn't known"
