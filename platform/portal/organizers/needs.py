"""What needs an organizer now, as sentences with the place where it is dealt with. Figures in, needs out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.template.defaultfilters import pluralize

from portal.liveness.models import Process
from portal.operations.figures import Backlog, Disk, Outbox, Workforce
from portal.reviews.deadlines import REVIEW_TIME

# A queue whose oldest step waits longer is slow.
QUEUE_TIME = timedelta(hours=6)
# The part of the disk from which on it is nearly full, even though the reserve is still free.
FULL = 0.9


@dataclass(frozen=True)
class Need:
    """Something to act on: `view` names the page where, `link` what it is called, and `runbook` what to do.

    `runbook` is the id of a heading of docs/operations.md.
    """

    heading: str
    text: str
    view: str = ""
    link: str = ""
    runbook: str = ""


def queue_needs(backlogs: Mapping[str, Backlog], workforces: Mapping[str, Workforce]) -> list[Need]:
    """Return what is wrong with the queues: paused, without a worker, sick workers, or slow."""
    page = {"view": "admin:evaluation_stepqueue_changelist", "link": "Queues and workers"}
    needs = []
    for name, force in workforces.items():
        backlog = backlogs.get(name, Backlog())
        waiting = f"{backlog.waiting} step{pluralize(backlog.waiting)} waiting"
        if force.is_paused:
            needs.append(
                Need(
                    f"The queue {name} is paused",
                    f"Steps of many runs failed; {waiting}.",
                    **page,
                    runbook="queuepaused",
                )
            )
        if backlog.waiting and not force.alive:
            text = f"{waiting}, and no worker has sent a heartbeat in the last minute."
            needs.append(Need(f"No worker is taking steps from {name}", text, **page, runbook="queuestalled"))
        if force.sick:
            text = (
                f"{force.sick} worker{pluralize(force.sick)} with failing steps of many runs while other "
                "workers succeed."
            )
            needs.append(Need(f"Sick workers in {name}", text, **page, runbook="workersick"))
        if backlog.oldest_s > QUEUE_TIME.total_seconds():
            text = f"{waiting}, the oldest for {in_hours(backlog.oldest_s)}."
            needs.append(Need(f"The queue {name} is slow", text, **page, runbook="queuelong"))
    return needs


def process_needs(silences: Mapping[Process, timedelta | None]) -> list[Need]:
    """Return which processes of the site have been silent too long, or were never started."""
    limit = timedelta(seconds=settings.LIVENESS_LATE_SECONDS)
    return [
        Need(
            f"The process “{process}” is silent",
            "It has never been started."
            if silence is None
            else f"Silent for {in_hours(silence.total_seconds())}.",
            runbook="processsilent",
        )
        for process, silence in silences.items()
        if silence is None or silence > limit
    ]


def worker_needs(silent: Iterable[str]) -> list[Need]:
    """Return the workers that fell silent while they ran a step."""
    names = sorted(set(silent))
    text = "No heartbeat for a minute, during a step: " + ", ".join(names) + "."
    page = {"view": "admin:evaluation_evaluation_changelist", "link": "Evaluations"}
    return (
        [Need(f"{len(names)} silent worker{pluralize(names)}", text, **page, runbook="workersilent")]
        if names
        else []
    )


def examination_needs(unattended: int) -> list[Need]:
    """Return whether examinations wait that no machine takes."""
    if not unattended:
        return []
    text = f"{unattended} examination{pluralize(unattended)} waiting."
    page = {"view": "admin:evaluation_examination_changelist", "link": "Examinations"}
    return [Need("No machine is running examinations", text, **page, runbook="examinationswait")]


def mail_needs(outbox: Outbox) -> list[Need]:
    """Return whether mails were given up."""
    if not outbox.failed:
        return []
    heading = f"{outbox.failed} e-mail{pluralize(outbox.failed)} not delivered"
    return [
        Need(
            heading,
            "Delivery was given up.",
            "admin:mail_outgoingmail_changelist",
            "E-mails and their errors",
            runbook="mailfailed",
        )
    ]


def disk_needs(disk: Disk) -> list[Need]:
    """Return whether the disk is nearly full."""
    if disk.free_bytes >= settings.DISK_RESERVE_BYTES and disk.used_part < FULL:
        return []
    return [
        Need(
            "The disk is nearly full",
            f"{disk.used_part:.0%} used, {disk.free_bytes / 1e9:.1f} GB free.",
            runbook="diskfills",
        )
    ]


def proof_needs(overdue: int, *, reads_queue: bool) -> list[Need]:
    """Return whether proofs wait too long for their reviewers, with their queue for whoever may read it."""
    if not overdue:
        return []
    heading = f"{overdue} overdue proof{pluralize(overdue)}"
    text = f"Public for more than {REVIEW_TIME.days} days, and still waiting for reviewers."
    page = {"view": "reviews:queue", "link": "Proof reviews"} if reads_queue else {}
    return [Need(heading, text, **page, runbook="proofsoverdue")]


def in_hours(seconds: float) -> str:
    """Return a duration such as "3 h 20 min" or "2 d 4 h"."""
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
