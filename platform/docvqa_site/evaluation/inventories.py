"""What the workers have, by their reports: which base weights, test sets and leakage sets a track can use."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.template.defaultfilters import pluralize

from docvqa_site.evaluation import clock
from docvqa_site.evaluation.models import Inventory
from evaluator.messages.inventories import Inventory as Report

# What a worker reported counts for so long: a short stop of the intake or of the only worker takes nothing away.
FRESH = timedelta(minutes=10)
# A worker reports every minute, also while it runs a step. One that is silent for longer is gone.
REPORTING = timedelta(minutes=2)
# More than any site has; each worker that may write to the intake could invent others.
MOST_WORKERS = 1000


@dataclass(frozen=True)
class Holding:
    """Base weights, test set or leakage set by its name: which workers have it, with its SHA-256, one if they agree.

    Attributes:
        workers: Those that are running; empty while none is, but one was until lately.
        hashes: Of all that reported it lately.
    """

    name: str
    workers: tuple[str, ...]
    hashes: frozenset[str]

    @property
    def sha256(self) -> str | None:
        """Its hash; None where the workers have different ones."""
        return next(iter(self.hashes)) if len(self.hashes) == 1 else None

    @property
    def where(self) -> str:
        """On how many workers it is, in words."""
        number = len(self.workers)
        if not number:
            return f"on a worker that reported it less than {FRESH // timedelta(minutes=1)} minutes ago and is gone"
        return f"on {number} worker{pluralize(number)}"


@dataclass(frozen=True)
class Stock:
    """All that the workers have, by name, and when each of them reported it."""

    references: Mapping[str, Holding]
    test_sets: Mapping[str, Holding]
    leakage_sets: Mapping[str, Holding]
    seen_at: Mapping[str, datetime]


def receive(report: Report, now: datetime | None = None) -> None:
    """Store what a worker has, in place of its earlier report."""
    known = Inventory.objects.filter(worker=report.worker).exists()
    if known or Inventory.objects.count() < MOST_WORKERS:
        values = report.model_dump(include={"references", "test_sets", "leakage_sets", "unenforced"})
        Inventory.objects.update_or_create(
            worker=report.worker, defaults={**values, "seen_at": now or clock.now()}
        )


def stock(now: datetime | None = None) -> Stock:
    """Return what the workers have that reported lately."""
    now = now or clock.now()
    fresh = list(Inventory.objects.filter(seen_at__gt=now - FRESH))
    running = {one.worker for one in fresh if one.seen_at > now - REPORTING}
    return Stock(
        references=_holdings(((one.worker, one.references) for one in fresh), running),
        test_sets=_holdings(((one.worker, one.test_sets) for one in fresh), running),
        leakage_sets=_holdings(((one.worker, one.leakage_sets) for one in fresh), running),
        seen_at={one.worker: one.seen_at for one in fresh},
    )


def unconfined(now: datetime | None = None) -> list[str]:
    """Return the workers that reported lately and whose kernel confines steps incompletely."""
    fresh = Inventory.objects.filter(seen_at__gt=(now or clock.now()) - FRESH).exclude(unenforced=[])
    return list(fresh.values_list("worker", flat=True))


def _holdings(reports: Iterable[tuple[str, Mapping[str, str]]], running: Set[str]) -> dict[str, Holding]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for worker, folders in reports:
        for name, sha256 in folders.items():
            found[name][worker] = sha256
    return {
        name: Holding(
            name, tuple(worker for worker in workers if worker in running), frozenset(workers.values())
        )
        for name, workers in sorted(found.items())
    }
