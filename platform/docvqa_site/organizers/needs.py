"""What needs an organizer now, as sentences with the place where it is dealt with. Figures in, needs out."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.template.defaultfilters import pluralize
from django.urls import reverse

from docvqa_site.challenge.models import Phase, Track
from docvqa_site.evaluation.inventories import Stock
from docvqa_site.liveness.models import Process
from docvqa_site.operations.figures import Backlog, Disk, Workforce
from docvqa_site.reviews.deadlines import REVIEW_TIME

# A queue whose oldest step waits longer is slow.
QUEUE_TIME = timedelta(hours=6)
# The part of the disk from which on it is nearly full, even though the reserve is still free.
FULL = 0.9


class Page(NamedTuple):
    """The page where something is dealt with, what a link to it is called, and the parts of its address."""

    view: str
    link: str
    parts: tuple[str | int, ...] = ()

    @property
    def address(self) -> str:
        return reverse(self.view, args=self.parts)


QUEUES = Page("admin:evaluation_stepqueue_changelist", "Queues and workers")
EVALUATIONS = Page("admin:evaluation_evaluation_changelist", "Evaluations")
EXAMINATIONS = Page("admin:evaluation_examination_changelist", "Examinations")
MAILS = Page("admin:mail_outgoingmail_changelist", "Emails and their errors")
MEMBERSHIPS = Page("admin:teams_membership_changelist", "Memberships")
REGISTRATIONS = Page("organizers:registrations", "Registrations")
OUTAGES = Page("organizers:outages", "Outages and maintenance")
DISQUALIFIED = Page("organizers:runs", "Runs")
PROOFS = Page("admin:reviews_proof_changelist", "Privacy proofs")
REVIEWS = Page("reviews:queue", "Proof reviews")
PEOPLE = Page("organizers:people", "Reviewers and organizers")


@dataclass(frozen=True)
class Need:
    """Something to act on; `runbook` is the id of the heading of docs/operations.md that says what to do.

    `places` are the pages of the things themselves.
    """

    heading: str
    text: str
    runbook: str
    page: Page | None = None
    places: Sequence[Page] = ()


def queue_needs(backlogs: Mapping[str, Backlog], workforces: Mapping[str, Workforce]) -> Iterator[Need]:
    """Yield what is wrong with the queues: paused, without a worker, sick workers, or slow."""
    for name, force in workforces.items():
        backlog = backlogs.get(name, Backlog())
        waiting = f"{backlog.waiting} step{pluralize(backlog.waiting)} waiting"
        if force.is_paused:
            text = f"Steps of many runs failed; {waiting}."
            yield Need(f"The queue {name} is paused", text, "queuepaused", QUEUES)
        if backlog.waiting and not force.alive:
            text = f"{waiting}, and no worker has sent a heartbeat in the last minute."
            yield Need(f"No worker is taking steps from {name}", text, "queuestalled", QUEUES)
        if force.sick:
            sick = f"{force.sick} worker{pluralize(force.sick)}"
            text = f"Steps of many runs fail on {sick} while other workers succeed."
            yield Need(f"Sick workers in {name}", text, "workersick", QUEUES)
        if backlog.oldest_s > QUEUE_TIME.total_seconds():
            text = f"{waiting}, the oldest for {in_hours(backlog.oldest_s)}."
            yield Need(f"The queue {name} is slow", text, "queuelong", QUEUES)


def track_needs(tracks: Iterable[Track], held: Stock) -> Iterator[Need]:
    """Yield which public tracks have base weights, a test set or a leakage set that no worker has."""
    for track in tracks:
        folders = {
            "the base weights": (track.reference, held.references),
            "the test set": (track.test_set, held.test_sets),
        }
        missing = [f"{what} {name}" for what, (name, there) in folders.items() if name not in there]
        if missing:
            text = f"No worker has reported {' or '.join(missing)} lately: runs of this track would fail."
            yield Need(f"{track} can't be evaluated", text, "tracklacksfiles")
        leakage = track.measured_leakage_set()
        if leakage and (name := f"{leakage.folder}/{leakage.split}") not in held.leakage_sets:
            text = (
                f"No worker has reported the leakage set {name} lately. Scores and ranks don't depend on it."
            )
            yield Need(f"{track}: leakage can't be measured", text, "tracklacksfiles")


def registration_needs(waiting: int) -> Iterator[Need]:
    if waiting:
        heading = f"{waiting} team{pluralize(waiting)} waiting for admission"
        yield Need(
            heading, "Read their answers, and admit or decline them.", "registrationswait", REGISTRATIONS
        )


def process_needs(silences: Mapping[Process, timedelta | None]) -> Iterator[Need]:
    """Yield which processes of the site have been silent too long, or were never started."""
    for process, silence in silences.items():
        heading = f"The process “{process}” is silent"
        if silence is None:
            yield Need(heading, "It has never been started.", "processsilent")
        elif silence.total_seconds() > settings.LIVENESS_LATE_SECONDS:
            yield Need(heading, f"Silent for {in_hours(silence.total_seconds())}.", "processsilent")


def worker_needs(silent: Iterable[str]) -> Iterator[Need]:
    if names := sorted(set(silent)):
        text = "No heartbeat for a minute, during a step: " + ", ".join(names) + "."
        yield Need(f"{len(names)} silent worker{pluralize(names)}", text, "workersilent", EVALUATIONS)


def examination_needs(unattended: int, page: Page | None) -> Iterator[Need]:
    """Yield whether examinations wait while no machine takes them; an organizer without the page can't start one."""
    if unattended:
        text = f"{unattended} examination{pluralize(unattended)} waiting."
        if page is None:
            text += " The organizers of all tracks can start a machine."
        yield Need("No machine is running examinations", text, "examinationswait", page)


def mail_needs(failed: int) -> Iterator[Need]:
    if failed:
        heading = f"{failed} email{pluralize(failed)} not delivered"
        yield Need(heading, "The site gave up trying to deliver.", "mailfailed", MAILS)


def disk_needs(disk: Disk) -> Iterator[Need]:
    if disk.free_bytes < settings.DISK_RESERVE_BYTES or disk.used_part >= FULL:
        text = f"{disk.used_part:.0%} used, {disk.free_bytes / 1e9:.1f} GB free."
        yield Need("The disk is nearly full", text, "diskfills")


def proof_needs(overdue: int, page: Page | None) -> Iterator[Need]:
    """Yield whether proofs wait too long for their reviewers, with the list of proofs that the organizer may read."""
    if overdue:
        text = f"Public for more than {REVIEW_TIME.days} days, and still waiting for reviewers."
        yield Need(f"{overdue} overdue proof{pluralize(overdue)}", text, "proofsoverdue", page)


def unassigned_needs(unassigned: int, first: Iterable[tuple[UUID, str]], page: Page | None) -> Iterator[Need]:
    """Yield whether too few are assigned to proofs, with the way to assign somebody to each of the `first`."""
    if unassigned:
        text = (
            "More decisions are needed than reviewers are assigned to make. Assign reviewers, or wait for reviewers "
            "to claim the proofs."
        )
        heading = f"{unassigned} proof{pluralize(unassigned)} with too few assigned reviewers"
        places = [
            Page("reviews:assign", f"Assign a reviewer to “{title}”", (str(key),)) for key, title in first
        ]
        yield Need(heading, text, "proofs-with-too-few-assigned-reviewers", page, places)


def contested_needs(
    contested: int, first: Iterable[tuple[str, date | None]], page: Page | None
) -> Iterator[Need]:
    """Yield whether proofs need another reviewer, since those who decided don't settle it.

    Args:
        first: The titles of some of them, each with the day by which another reviewer can contradict a rejection.
    """
    if contested:
        named = [
            f"“{title}”" + (f" (by {day:%b} {day.day}, {day:%Y})" if day else "") for title, day in first
        ]
        more = [f"{contested - len(named)} more"] if contested > len(named) else []
        text = (
            f"{', '.join(named + more)}. The reviewers who haven't decided were asked by email. Assign one if nobody "
            "has claimed the proof."
        )
        heading = f"{contested} proof{pluralize(contested, ' needs,s need')} another reviewer"
        yield Need(heading, text, "another-reviewer", page)


def stuck_needs(stuck: int, page: Page | None) -> Iterator[Need]:
    """Yield whether proofs wait while too few reviewers, or none, are left; `page` is where reviewers are invited."""
    if stuck:
        text = "All other reviewers have decided, stepped aside or have a conflict of interest. "
        text += (
            "Invite another reviewer, then assign them."
            if page
            else "Ask an organizer of all tracks to invite another reviewer, then assign them."
        )
        heading = f"{stuck} proof{pluralize(stuck, ' has,s have')} too few reviewers left"
        yield Need(heading, text, "another-reviewer", page)


def team_needs(without_owner: int) -> Iterator[Need]:
    if without_owner:
        text = "Make a member of each the owner, or nobody can invite people or remove members."
        heading = f"{without_owner} team{pluralize(without_owner)} without an active owner"
        yield Need(heading, text, "teamlacksowner", MEMBERSHIPS)


def closing_needs(ended: Iterable[Phase], closable: Container[Track]) -> Iterator[Need]:
    """Yield which phases have ended and aren't closed, each with its page if the organizer may close it."""
    for phase in ended:
        parts = (phase.track.slug, phase.pk)
        page = Page("organizers:close_phase", f"Close “{phase}”", parts) if phase.track in closable else None
        text = "Its results aren't final until the phase is closed."
        yield Need(f"{phase.track}: “{phase}” has ended", text, "phases-to-close", page)


def outage_needs(owed: Iterable[tuple[str, str]]) -> Iterator[Need]:
    """Yield which phases lost time to outages that nobody has made up for, of each with that time."""
    for phase, time in owed:
        text = f"It lost {time} to outages. An extension can make up for this."
        yield Need(f"{phase} lost time", text, "outages-and-maintenance", OUTAGES)


def appeal_needs(waiting: int) -> Iterator[Need]:
    if waiting:
        text = "Lift the disqualification on the run's page, or explain there why it stands."
        yield Need(f"{waiting} appeal{pluralize(waiting)} to answer", text, "appeals", DISQUALIFIED)


def in_hours(seconds: float) -> str:
    """Return a duration such as "3 h 20 min" or "2 d 4 h"."""
    minutes = int(seconds // 60)
    if not minutes:
        return "under 1 min"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
