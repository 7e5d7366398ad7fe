"""What a series of platform faults means: nothing yet, an outage for all, or one sick worker.

A single fault may be due to the run; it is tried again later. When steps of several runs fail and none passes in
between, something that all of them need is away, and more attempts would only waste their tries. When one worker
fails them while others work, that worker is at fault. Faults of one team's runs alone may be due to its files, so they
mean nothing as long as other teams have something to lose by a pause.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

# So many different runs must have failed.
MANY = 3


@dataclass(frozen=True)
class Ending:
    """How a step of a run ended at a worker. It is `healthy` unless the platform was at fault."""

    run: UUID
    team: int
    worker: str
    is_healthy: bool


@dataclass(frozen=True)
class Outage:
    """Steps fail wherever they run."""


@dataclass(frozen=True)
class SickWorker:
    """Steps fail at one worker only."""

    worker: str


def diagnose(
    endings: Sequence[Ending], working: Iterable[str], teams: Iterable[int]
) -> Outage | SickWorker | None:
    """Return what the recent endings in one queue mean.

    Args:
        endings: The recent endings, the newest first.
        working: The workers of the queue that are alive and not known to be sick.
        teams: The teams that have a run in the queue.
    """
    if not endings:
        return None
    worker = endings[0].worker
    own = _faults([ending for ending in endings if ending.worker == worker])
    faults = _faults(endings)
    known = set(teams)
    at_fault = {ending.worker for ending in faults}
    if at_fault == {worker} and set(working) - {worker}:
        return SickWorker(worker) if _is_many(own, known) else None
    return Outage() if _is_many(faults, known) else None


def _faults(endings: Iterable[Ending]) -> list[Ending]:
    """Return the endings since the last healthy one."""
    return list(takewhile(lambda ending: not ending.is_healthy, endings))


def _is_many(faults: Sequence[Ending], teams: set[int]) -> bool:
    runs, failing = {ending.run for ending in faults}, {ending.team for ending in faults}
    return len(runs) >= MANY and (len(failing) > 1 or teams <= failing)
