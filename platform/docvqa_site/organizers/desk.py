"""The figures of the desk's first page, in a constant number of queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Value
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.boards.corrections import corrections
from docvqa_site.boards.required_examinations import MissingExamination, missing_examinations
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.phases import BEGINNING
from docvqa_site.challenge.selectors import organized_tracks, others_tracks
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.examining.requests import unattended
from docvqa_site.evaluation.intake.near_copies import near_copies_of_other_teams
from docvqa_site.evaluation.inventories import REPORTING, stock
from docvqa_site.evaluation.models import Evaluation, EvaluationState, TestSet
from docvqa_site.evaluation.queue.dispatch import ALIVE
from docvqa_site.liveness.models import silences
from docvqa_site.mail.models import OutgoingMail
from docvqa_site.operations import figures
from docvqa_site.organizers import needs
from docvqa_site.organizers.access import CLOSING
from docvqa_site.organizers.cards import cards_for, counted_for, kinds_for
from docvqa_site.organizers.counting import counted
from docvqa_site.organizers.days import bars, daily_submissions
from docvqa_site.organizers.failures import failures
from docvqa_site.organizers.outages import downtimes
from docvqa_site.organizers.quotas import near_quota
from docvqa_site.organizers.registrations import waiting_registrations
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.deadlines import REVIEW_TIME
from docvqa_site.reviews.eligibility import may_organize
from docvqa_site.reviews.run_appeals import open_appeals
from docvqa_site.reviews.selectors import (
    ProofMark,
    contested_proofs,
    judgeable_submissions,
    unassigned_proofs,
    undecided_kinds,
    without_reviewers,
)
from docvqa_site.submissions.models import Run, Submission, SubmissionState
from docvqa_site.teams.selectors import teams_without_owner
from evaluator.messages.rankings import COUNTED

# Flags of older runs have been looked at, or never will be.
FLAGS_TIME = timedelta(days=30)
MOST_FLAGGED = 20
MOST_NEAR_QUOTA = 20
MOST_CONTESTED = 5
MOST_UNASSIGNED = 5
# The counts of proofs that are neither accepted nor rejected for good, and what each of them is.
UNDECIDED = {
    "unsettled proofs": ProofMark(0),
    "waiting proofs": ProofMark.WAITING,
    "overdue proofs": ProofMark.WAITING | ProofMark.OVERDUE,
    "unassigned proofs": ProofMark.WAITING | ProofMark.UNASSIGNED,
    "contested proofs": ProofMark.WAITING | ProofMark.CONTESTED,
    "tried proofs": ProofMark.WAITING | ProofMark.TRIED,
    # The link to their own reviews in the menu.
    "own reviews": ProofMark.WAITING | ProofMark.UNSEEN,
}


@dataclass(frozen=True)
class WorkerRow:
    """A worker that was seen in the last day, and the step that it runs; None while it runs none.

    Attributes:
        queue: The queue whose steps it has run, or several; empty before its first step.
        seen_at: Its last heartbeat, or its last report of what it has, which it sends every minute.
    """

    name: str
    queue: str
    evaluation: Evaluation | None
    state: str
    seen_at: datetime


def desk_of(organizer: User) -> dict[str, object]:
    """Return what the first page shows: what needs the organizer now, and the figures below it."""
    now, conflicts = clock.now(), Conflicts(organizer)
    judged = judgeable_submissions(organizer, conflicts)
    backlogs = figures.backlogs(figures.attempts(), now)
    held = stock(now)
    queue_workers = figures.queue_workers()
    workers = worker_rows(queue_workers, held.seen_at, now)
    counts = counted(
        {
            **counted_for(judged),
            "appeals of runs": open_appeals(judged),
            "teams without owner": teams_without_owner(),
            "waiting registrations": waiting_registrations(organizer),
            "failed mails": OutgoingMail.objects.filter(failed_at__isnull=False),
        },
        undecided_kinds(judged, organizer, now - REVIEW_TIME),
        *kinds_for(now),
    )
    counts |= {
        name: sum(counts[kind] for kind in counts if kind.isdecimal() and marks in ProofMark(int(kind)))
        for name, marks in UNDECIDED.items()
    }
    # Of those that nobody is left to decide on, it is no use to ask for an assignment or to wait.
    stuck = without_reviewers(judged) if counts["tried proofs"] else set()
    if stuck:
        kinds = undecided_kinds(judged.filter(pk__in=stuck), organizer, now - REVIEW_TIME)
        for row in kinds:
            for name in ("unassigned proofs", "contested proofs"):
                counts[name] -= row["count"] if UNDECIDED[name] in ProofMark(int(row["part"])) else 0
    contested = (
        contested_proofs(judged.exclude(pk__in=stuck), MOST_CONTESTED) if counts["contested proofs"] else []
    )
    unassigned = (
        unassigned_proofs(judged.exclude(pk__in=stuck), MOST_UNASSIGNED)
        if counts["unassigned proofs"] and may_organize(organizer)
        else []
    )
    # The administration is closed to organizers of single tracks, and the site as a whole isn't theirs.
    has_site = not organizer.organizes_single_tracks
    listed = needs.PROOFS if has_site and may_organize(organizer) else None
    proofs = needs.REVIEWS if is_reviewer(organizer) else listed
    invites = has_site and organizer.has_perm("challenge.change_track")
    waiting = unattended(now)
    if not has_site:
        own_runs = Run.objects.filter(pk__in=[one.run_id for one in waiting], submission__in=judged)
        judged_runs = set(own_runs.values_list("pk", flat=True)) if waiting else set()
        waiting = [one for one in waiting if one.run_id in judged_runs]
    of_tracks = [
        *needs.examination_needs(len(waiting), needs.EXAMINATIONS if has_site else None),
        *needs.proof_needs(counts["overdue proofs"], proofs),
        *needs.unassigned_needs(counts["unassigned proofs"], unassigned, proofs),
        *needs.contested_needs(counts["contested proofs"], contested, proofs),
        *needs.stuck_needs(len(stuck), needs.PEOPLE if invites else None),
        *needs.appeal_needs(counts["appeals of runs"]),
    ]
    of_site = [
        *needs.queue_needs(backlogs, figures.workforces(queue_workers, now)),
        *needs.process_needs(silences()),
        *needs.worker_needs(row.name for row in workers if row.state == "silent"),
        *needs.team_needs(counts["teams without owner"]),
        *needs.mail_needs(counts["failed mails"]),
        *needs.disk_needs(figures.disk()),
    ]
    today = timezone.now().date()
    organized = organized_tracks(organizer).prefetch_related("phases__final_results")
    tracks = [track for track in organized if not track.is_draft]
    phases = [phase for track in tracks for phase in track.phases.all()]
    unclosed = [phase for phase in phases if not phase.final_results.all()]
    ended = [phase for phase in unclosed if phase.has_ended(now)]
    competed = [track for track in tracks if track.pk in conflicts.competed]
    closable = set(tracks) - set(competed) if organizer.has_perms(CLOSING) else set()
    # A correction comes before what it corrects.
    published = [results for phase in phases for results in phase.final_results.all()[:1]]
    own = [
        *needs.track_needs(tracks, held),
        *needs.closing_needs(ended, closable),
        *needs.registration_needs(counts["waiting registrations"]),
        *needs.outage_needs(
            (f"{one.phase.track}: “{one.phase}”", one.owed_words)
            for one in downtimes(now, unclosed)
            if one.needs_organizer
        ),
    ]
    found = [*own, *(of_site if has_site else []), *of_tracks]
    doubtful, flagged = _first_of(doubtful_logs(judged, tracks), flagged_runs(judged, now))
    return {
        "needs": found,
        "failures": (failed := failures(organized)),
        "failed_runs": sum(one.runs for one in failed),
        "doubtful_logs": doubtful,
        "flagged": flagged,
        "near_copies": list(near_copies_of_other_teams(judged, now, MOST_FLAGGED)),
        "near_quota": near_quota(judged, tracks, timezone.now(), MOST_NEAR_QUOTA),
        "missing_examinations": judged_missing(judged, tracks),
        "corrections": corrections(one for one in published if one.phase.track not in competed),
        "cards": cards_for(organizer, counts) if has_site else [],
        "own_reviews": counts["own reviews"],
        "held": [
            ("Base weights", held.references.values()),
            ("Test sets", held.test_sets.values()),
            ("Leakage sets", held.leakage_sets.values()),
        ],
        "backlogs": backlogs,
        "workers": [row for row in workers if row.state != "gone"],
        "gone_workers": [row for row in workers if row.state == "gone"],
        "days": bars(daily_submissions(today, organizer), today),
        "tracks": tracks,
        # Of organizers of all tracks it shows on the pages themselves.
        "competed": [] if has_site else competed,
        "drafts": [track for track in organized if track.is_draft],
        "to_close": set(ended),
        "split_test_sets": split_test_sets(organizer),
    }


def split_test_sets(organizer: User) -> list[TestSet]:
    """Return the test sets with a private part that are used by tracks which the organizer organizes, and no others."""
    found = TestSet.objects.exclude(split_sha256="").order_by("name")
    return list(found.exclude(name__in=others_tracks(organizer).values("test_set")))


def worker_rows(
    found: Iterable[figures.QueueWorker], reported: Mapping[str, datetime], now: datetime
) -> list[WorkerRow]:
    """Return the workers of the last day, the one that was seen last first.

    Args:
        found: What is known of the queues' workers.
        reported: When workers reported lately what they have.
    """
    running = Evaluation.objects.filter(state=EvaluationState.RUNNING).select_related("run__submission")
    at = {evaluation.worker: evaluation for evaluation in running.defer("run__results", "run__rules")}
    # One that takes steps of two queues is known in each.
    known: dict[str, list[figures.QueueWorker]] = {name: [] for name in reported}
    for row in found:
        if row.name is not None:
            known.setdefault(row.name, []).append(row)
    rows = [_row(name, queues, at.get(name), reported.get(name), now) for name, queues in known.items()]
    return sorted(rows, key=lambda row: row.seen_at, reverse=True)


def _row(
    name: str,
    of_queues: Sequence[figures.QueueWorker],
    evaluation: Evaluation | None,
    reported_at: datetime | None,
    now: datetime,
) -> WorkerRow:
    """Return a worker of these queues with its state. Without a step, it sends no heartbeats, but reports."""
    heartbeats = [row.seen_at for row in of_queues if row.seen_at is not None]
    heartbeat = max(heartbeats, default=reported_at or now)
    seen_at = max(heartbeat, reported_at or heartbeat)
    if any(row.sick_at is not None for row in of_queues):
        state = "sick"
    elif evaluation is not None:
        state = "running" if heartbeat > now - ALIVE else "silent"
    else:
        state = "idle" if seen_at > now - REPORTING else "gone"
    queues = ", ".join(row.queue for row in of_queues)
    return WorkerRow(name, queues, evaluation, state, seen_at)


def judged_missing(submissions: QuerySet[Submission], tracks: Sequence[Track]) -> list[MissingExamination]:
    """Return the examinations that ranks of these submissions lack, those first that an organizer must act on."""
    missing = missing_examinations(tracks)
    runs = Run.objects.filter(pk__in=[one.run.pk for one in missing], submission__in=submissions)
    judged = set(runs.values_list("pk", flat=True)) if missing else set()
    return sorted((one for one in missing if one.run.pk in judged), key=lambda one: not one.needs_organizer)


def _first_of(*parts: QuerySet[Run]) -> list[list[Run]]:
    """Return the first `MOST_FLAGGED` of each of these queries, the newest first, with what a line says of each run."""
    firsts = [
        Run.objects.filter(pk__in=runs.order_by("-scored_at").values("pk")[:MOST_FLAGGED])
        .order_by()
        .values_list("pk", Value(number))
        for number, runs in enumerate(parts)
    ]
    # Most of the time there are none, and to ask for their columns takes longer than to find this out.
    found = list(firsts[0].union(*firsts[1:], all=True))
    runs = Run.objects.select_related("submission__team", "submission__track").defer("results")
    by_key = runs.in_bulk({key for key, _ in found}) if found else {}
    return [
        sorted(
            (by_key[key] for key, number in found if number == part),
            key=lambda run: run.scored_at or BEGINNING,
            reverse=True,
        )
        for part in range(len(parts))
    ]


def doubtful_logs(submissions: QuerySet[Submission], tracks: Iterable[Track]) -> QuerySet[Run]:
    """Return their runs that only a flagged log keeps from a rank in these tracks."""
    by_bytes = [track for track in tracks if track.kind.rule.ranks_bytes]
    # Where bytes rank, there are no budgets: the index of their board has all of this.
    flagged = Run.objects.filter(
        scored_at__isnull=False,
        budget__isnull=True,
        disqualified_because="",
        log_flag__isnull=False,
        log_accepted_at__isnull=True,
    )
    return Run.objects.filter(
        Q(submission__phase__requires_counted=False) | Q(counting=COUNTED),
        pk__in=flagged.values("pk"),
        submission__in=submissions.filter(track__in=by_bytes, practice=False),
        submission__state=SubmissionState.SUBMITTED,
    )


def flagged_runs(submissions: QuerySet[Submission], now: datetime) -> QuerySet[Run]:
    """Return their runs with a flagged check that were scored lately."""
    return Run.objects.filter(
        scored_at__gt=now - FLAGS_TIME,
        submission__in=submissions,
        disqualified_because="",
        flagged_checks__gt=0,
    )
