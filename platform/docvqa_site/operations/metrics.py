"""The site's metrics, read from the database at each request: every web process answers the same.

The number of queries is constant and none of them reads a row's documents.
"""

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db.models import Count, Sum
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from docvqa_site.evaluation import clock, inventories
from docvqa_site.evaluation.models import StepReport
from docvqa_site.liveness.models import BACKUP, Process, ages
from docvqa_site.operations import figures
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.uploads.models import Upload, UploadState


class SiteCollector(Collector):
    def collect(self) -> Iterable[Metric]:
        runs = Run.objects.order_by().values_list("state").annotate(Count("pk"))
        yield by_label("pfl_runs", "Runs by state.", "state", dict(runs))
        yield from _evaluations()
        yield _reports()
        yield value(
            "pfl_submissions_refunded",
            "Submissions with a returned quota slot.",
            Submission.objects.filter(refunded_at__isnull=False).count(),
        )
        yield from _workers()
        yield from _uploads()
        yield from _mails()
        yield from _disk()
        yield from _signs_of_life()


def exposition() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SiteCollector())
    return generate_latest(registry)


def value(name: str, meaning: str, number: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=number)


def by_label(name: str, meaning: str, label: str, numbers: dict[str, float]) -> Metric:
    return by_labels(name, meaning, [label], (((labeled,), number) for labeled, number in numbers.items()))


def by_labels(
    name: str, meaning: str, labels: Sequence[str], numbers: Iterable[tuple[Sequence[str], float]]
) -> Metric:
    """Return a metric of one number for each combination of values of the labels."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in numbers:
        family.add_metric(values, number)
    return family


def _evaluations() -> Iterable[Metric]:
    found = figures.attempts()
    attempts = [((row.state, row.step), row.count) for row in found]
    yield by_labels("pfl_attempts", "Attempts at runs, by state and step.", ["state", "step"], attempts)
    backlogs = figures.backlogs(found, clock.now())
    waiting = {name: float(backlog.waiting) for name, backlog in backlogs.items()}
    oldest = {name: backlog.oldest_s for name, backlog in backlogs.items()}
    yield by_label("pfl_queue_steps", "Steps waiting for a worker, by queue.", "queue", waiting)
    yield by_label("pfl_queue_oldest_seconds", "Waiting time of the oldest step.", "queue", oldest)


def _reports() -> Metric:
    rows = StepReport.objects.order_by().values_list("step", "outcome").annotate(Count("pk"))
    counts = [((step, outcome), count) for step, outcome, count in rows]
    return by_labels("pfl_step_reports", "Step reports, by step and outcome.", ["step", "outcome"], counts)


def _workers() -> Iterable[Metric]:
    now = clock.now()
    found = figures.workforces(figures.queue_workers(), now)
    for name, meaning, field in (
        ("pfl_workers_alive", "Workers with a heartbeat in the last minute.", "alive"),
        ("pfl_workers_sick", "Workers on which steps of many runs fail.", "sick"),
        ("pfl_queue_paused", "Whether the queue is paused after an outage.", "is_paused"),
    ):
        yield by_label(
            name, meaning, "queue", {queue: getattr(force, field) for queue, force in found.items()}
        )
    yield value(
        "pfl_workers_unconfined",
        "Workers whose kernel confines steps incompletely.",
        len(inventories.unconfined(now)),
    )


def _uploads() -> Iterable[Metric]:
    rows = Upload.objects.exclude(state=UploadState.ABORTED).order_by().values_list("state")
    counts = {state: (count, size) for state, count, size in rows.annotate(Count("pk"), Sum("size_bytes"))}
    files, file_bytes = counts.get(UploadState.COMPLETED, (0, 0))
    unfinished, unfinished_bytes = counts.get(UploadState.OPEN, (0, 0))
    yield value("pfl_uploads_open", "Unfinished uploads.", unfinished)
    yield value("pfl_uploads_open_bytes", "Announced bytes of unfinished uploads.", unfinished_bytes)
    yield value("pfl_store_files", "Files in the store.", files)
    yield value("pfl_store_bytes", "Bytes of all files in the store.", file_bytes)
    budget = settings.STORE_BUDGET_BYTES
    yield value("pfl_store_budget_bytes", "Bytes that the store may take; 0 for any number.", budget)


def _mails() -> Iterable[Metric]:
    outbox = figures.outbox()
    yield value("pfl_mails_waiting", "Emails waiting for delivery.", outbox.waiting)
    yield value("pfl_mails_oldest_seconds", "Waiting time of the oldest email.", outbox.oldest_s)
    yield value("pfl_mails_failed", "Emails that could not be delivered.", outbox.failed)


def _disk() -> Iterable[Metric]:
    disk = figures.disk()
    yield value("pfl_disk_bytes", "Size of the disk that holds the site's folder.", disk.total_bytes)
    yield value("pfl_disk_free_bytes", "Free bytes on that disk.", disk.free_bytes)


def _signs_of_life() -> Iterable[Metric]:
    """Yield how long each process has been silent, and the age of the newest backup; what never was is left out."""
    found = ages()
    silent = {str(name): found[name].total_seconds() for name in Process if name in found}
    yield by_label(
        "pfl_process_silence_seconds", "Seconds since a process last checked in.", "process", silent
    )
    backup = GaugeMetricFamily("pfl_backup_age_seconds", "Seconds since the newest backup was complete.")
    if BACKUP in found:
        backup.add_metric([], found[BACKUP].total_seconds())
    yield backup
