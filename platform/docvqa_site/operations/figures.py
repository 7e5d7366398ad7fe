"""Figures of the site's operation, read from the database when they are asked for: for metrics and organizers alike."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Min
from django.utils import timezone

from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepQueue
from docvqa_site.evaluation.queue.dispatch import ALIVE
from docvqa_site.evaluation.queue.places import QUEUES
from docvqa_site.mail.models import WAITING, OutgoingMail

QUEUE_NAMES = sorted(set(QUEUES.values()))


@dataclass(frozen=True)
class Attempts:
    """How many attempts are in a state at a step, and since when the first of them waits for it."""

    state: str
    step: str
    count: int
    since: datetime


@dataclass(frozen=True)
class Backlog:
    """How many steps wait in a queue, and for how many seconds the oldest one."""

    waiting: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True)
class Workforce:
    """How many workers of a queue live and are sick, and whether the queue is paused after an outage."""

    alive: int = 0
    sick: int = 0
    is_paused: bool = False


class QueueWorker(NamedTuple):
    """A queue with a worker that has run its steps; what is the worker's is None where the queue has none."""

    queue: str
    paused_at: datetime | None
    name: str | None
    seen_at: datetime | None
    sick_at: datetime | None


@dataclass(frozen=True)
class Outbox:
    """How many mails wait and were given up, and for how many seconds the oldest has waited."""

    waiting: int
    failed: int
    oldest_s: float


@dataclass(frozen=True)
class Disk:
    """The space of this process's disk, which is the store's as well if that is a folder."""

    total_bytes: int
    free_bytes: int

    @property
    def used_part(self) -> float:
        """The part of the disk that is used, in [0, 1]."""
        return 1 - self.free_bytes / self.total_bytes


def attempts() -> list[Attempts]:
    rows = Evaluation.objects.order_by().values_list("state", "step")
    return [Attempts(*row) for row in rows.annotate(Count("pk"), Min("step_queued_at"))]


def backlogs(found: Iterable[Attempts], now: datetime) -> dict[str, Backlog]:
    """Return what waits in each queue, by its name."""
    waiting = dict.fromkeys(QUEUE_NAMES, Backlog())
    for row in found:
        if row.state == EvaluationState.QUEUED:
            name = {str(step): queue for step, queue in QUEUES.items()}[row.step]
            before, age_s = waiting[name], (now - row.since).total_seconds()
            waiting[name] = Backlog(before.waiting + row.count, max(before.oldest_s, age_s))
    return waiting


def queue_workers() -> list[QueueWorker]:
    """Return each queue with each of its workers, by the queue's name."""
    rows = StepQueue.objects.order_by("pk")
    fields = ("pk", "paused_at", "workers__name", "workers__seen_at", "workers__sick_at")
    return [QueueWorker(*row) for row in rows.values_list(*fields)]


def workforces(found: Iterable[QueueWorker], now: datetime) -> dict[str, Workforce]:
    """Return the workers that sent a heartbeat in the last minute, by queue."""
    forces = dict.fromkeys(QUEUE_NAMES, Workforce())
    for row in found:
        lives = row.seen_at is not None and row.seen_at > now - ALIVE
        before = forces.get(row.queue, Workforce())
        sick = lives and row.sick_at is not None
        forces[row.queue] = Workforce(before.alive + lives, before.sick + sick, row.paused_at is not None)
    return {name: forces[name] for name in sorted(forces)}


def outbox() -> Outbox:
    """Return how many mails wait, and since when."""
    numbers = OutgoingMail.objects.aggregate(
        waiting=Count("pk", filter=WAITING),
        failed=Count("failed_at"),
        oldest=Min("created_at", filter=WAITING),
    )
    oldest_s = (timezone.now() - numbers["oldest"]).total_seconds() if numbers["oldest"] else 0.0
    return Outbox(numbers["waiting"], numbers["failed"], oldest_s)


def disk() -> Disk:
    usage = shutil.disk_usage(Path(settings.HOME))
    return Disk(usage.total, usage.free)
