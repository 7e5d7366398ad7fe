"""Examinations from the organizers' request to their end; every change of state is `move_examination`'s.

An examination waits in the database. The broker's message is a wake-up call and nothing else: whoever gets it takes the
oldest examination that waits. So a message that arrives twice, or never, does no harm: the first to take an
examination has it, and the watchdog sends another call while one waits.

The machine that runs it sends heartbeats. Without them the examination is broken; organizers request it again.
"""

import logging
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error, close_old_connections, transaction
from kombu.exceptions import OperationalError

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.celery import EXAMINATIONS_QUEUE, EXAMINE_TASK, app
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation import clock, notifications
from docvqa_site.evaluation.examining.files import require
from docvqa_site.evaluation.examining.levels import LEVELS
from docvqa_site.evaluation.examining.trust import earned, failure, with_trust
from docvqa_site.evaluation.models import ACTIVE_EXAMINATIONS, Examination, ExaminationState
from docvqa_site.evaluation.states import move_examination
from docvqa_site.liveness.models import EXAMINATIONS, ages
from docvqa_site.submissions.models import Run, RunState
from evaluator.errors import ErrorCode, ProblemError, shorten
from evaluator.messages.examinations import Report
from evaluator.messages.jobs import TrustLevel

logger = logging.getLogger(__name__)

MAX_TEXT_CHARACTERS = 500
MAX_REASON_CHARACTERS = 4000
BEAT_S = 2.0


class EndedError(Exception):
    """The examination has been ended meanwhile: it was canceled, or its machine was thought lost."""


def reject_unscored(run: Run) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_STATE`) unless the run is scored.

    That of a withdrawn submission can be examined: what was found holds for its files, whoever submits them again.
    """
    if run.state != RunState.SCORED:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="Only scored runs can be examined.",
            where=str(run),
            expected=RunState.SCORED,
            found=run.state,
        )


@transaction.atomic
def request(run: Run, level: TrustLevel, *, by: User | None, reason: str = "") -> Examination:
    """Queue an examination of a scored run for a machine that takes examinations; the history has the reason.

    Raises:
        ProblemError: (`E_SUBMISSION_STATE`) The run isn't scored; (`E_ARTIFACT_MISSING`) it lacks a file that the level
            needs; (`E_EXAMINATION_ACTIVE`) it is being examined already.
    """
    current = Run.objects.select_for_update(of=("self",)).select_related("submission").get(pk=run.pk)
    reject_unscored(current)
    require(current, LEVELS[level].required)
    active = current.examinations.filter(state__in=ACTIVE_EXAMINATIONS).first()
    if active is not None:
        raise ProblemError.of(ErrorCode.EXAMINATION_ACTIVE, where=str(run), found=str(active))
    examination = Examination.objects.create(run=current, level=level, by=by, requested_at=clock.now())
    record(by, "examination.queued", examination, level=level, **({"reason": reason} if reason else {}))
    # Robust: whatever goes wrong is logged, and the watchdog's next look repeats it.
    transaction.on_commit(wake, robust=True)
    return examination


def wake() -> None:
    """Call a machine that takes examinations."""
    try:
        app.send_task(EXAMINE_TASK, queue=EXAMINATIONS_QUEUE)
    except (OperationalError, OSError):
        logger.exception("The broker took no call for examinations; the watchdog repeats it.")


@transaction.atomic
def take(examination: Examination | None = None) -> Examination | None:
    """Take the oldest examination that waits, or this one, to run it here; None if there is none."""
    waiting = Examination.objects.filter(state=ExaminationState.QUEUED).order_by("requested_at", "pk")
    if examination is not None:
        waiting = waiting.filter(pk=examination.pk)
    taken = waiting.select_for_update(skip_locked=True, of=("self",)).first()
    if taken is not None:
        now = clock.now()
        move_examination(taken, ExaminationState.RUNNING, machine=this_machine(), heartbeat_at=now)
    return taken


@transaction.atomic
def conclude(examination: Examination, report: Report) -> None:
    """Store what an examination found, and give the run the trust level that follows from all of its examinations.

    Raises:
        ProblemError: (`E_SUBMISSION_STATE`) The run isn't scored any more.
        EndedError: The examination has ended meanwhile, without this report.
    """
    run = Run.objects.select_for_update(of=("self",)).select_related("submission")
    current = run.get(pk=examination.run_id)
    reject_unscored(current)
    verdict = ExaminationState.PASSED if report.passed else ExaminationState.FAILED
    _end(examination, verdict, report=_storable(report.model_dump(mode="json")))
    assert current.scored_at is not None  # noqa: S101  (as it is scored)
    examinations = list(current.examinations.select_related("by"))
    trust = earned(current.scored_at, examinations)
    current.results = with_trust(current.results, trust, failure(examinations))
    current.save(update_fields=["results"])
    boards_changed(current.submission.track_id)


@transaction.atomic
def break_off(examination: Examination, reason: str) -> None:
    """End an examination that runs and found nothing out. Raises `EndedError` if it has ended meanwhile."""
    lines = (shorten(line, MAX_TEXT_CHARACTERS) for line in reason.splitlines())
    _end(examination, ExaminationState.BROKEN, reason="\n".join(lines)[-MAX_REASON_CHARACTERS:])


@transaction.atomic
def cancel(examination: Examination, *, actor: User | None) -> None:
    """End an examination that waits or runs; a machine that runs it stops. Raises `EndedError` if it has ended."""
    _end(examination, ExaminationState.CANCELED, actor=actor)


def beat(examination: Examination, progress: str = "") -> None:
    """Store a heartbeat of the examination that runs here. Raises `EndedError` if it has ended meanwhile."""
    running = Examination.objects.filter(pk=examination.pk, state=ExaminationState.RUNNING)
    try:
        is_running = running.update(heartbeat_at=clock.now(), progress=progress)
    except Error:
        # The database may be back before the heartbeats count as missing.
        logger.exception("No heartbeat of %s could be stored.", examination.pk)
        close_old_connections()
        return
    if not is_running:
        raise EndedError(f"Examination {examination.pk} has already ended.")


class Heart:
    """Sends the heartbeats of an examination, every `BEAT_S` at most, however often it is called."""

    def __init__(self, examination: Examination) -> None:
        self._examination, self._progress = examination, ""
        self._beaten_at = float("-inf")

    def __call__(self, progress: str = "") -> None:
        self._progress = progress or self._progress
        if time.monotonic() - self._beaten_at >= BEAT_S:
            beat(self._examination, self._progress)
            self._beaten_at = time.monotonic()


def watch(now: datetime, since: datetime, calls: Callable[[], int | None]) -> None:
    """End examinations whose machine is silent, call a machine for those that wait, and report that there is none.

    Args:
        since: Since when the watchdog has looked without a long pause.
        calls: Returns how many calls wait in the broker; None if it doesn't answer.
    """
    silence = timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
    running = Examination.objects.filter(state=ExaminationState.RUNNING, heartbeat_at__lt=now - silence)
    for examination in running if since < now - silence else ():
        logger.warning("Lost %s: %s sends no heartbeat.", examination, examination.machine)
        _end_lost(examination, now - silence)
    if Examination.objects.filter(state=ExaminationState.QUEUED).exists() and calls() == 0:
        wake()
    if since < now - timedelta(seconds=settings.EVALUATION_UNATTENDED_SECONDS):
        _notify_unattended(now)


def unattended(now: datetime) -> list[Examination]:
    """Return the examinations that no machine takes: those that have waited long, while none runs."""
    long_ago = now - timedelta(seconds=settings.EVALUATION_UNATTENDED_SECONDS)
    found = Examination.objects.filter(state__in=ACTIVE_EXAMINATIONS)
    active = list(found.select_related("run__submission__track").defer("run__results", "run__rules"))
    if any(one.state == ExaminationState.RUNNING for one in active):
        return []
    return [one for one in active if one.requested_at < long_ago]


def _notify_unattended(now: datetime) -> None:
    """Notify the organizers of each track of its examinations that no machine takes."""
    by_track: dict[Track, list[Examination]] = defaultdict(list)
    for examination in sorted(unattended(now), key=lambda one: one.requested_at):
        by_track[examination.run.submission.track].append(examination)
    for track, waiting in by_track.items():
        notifications.notify_of_waiting_examinations(track, waiting)


def has_machine() -> bool:
    """Return whether a machine that takes examinations has checked in lately."""
    age = ages().get(EXAMINATIONS)
    return age is not None and age.total_seconds() <= settings.LIVENESS_LATE_SECONDS


def this_machine() -> str:
    """Return the name of this machine for the organizers."""
    return os.environ.get("PFL_WORKER_NAME") or socket.gethostname()


def _end(
    examination: Examination, state: ExaminationState, *, actor: User | None = None, **fields: Any
) -> None:
    current = Examination.objects.select_for_update(of=("self",)).get(pk=examination.pk)
    if current.state not in ACTIVE_EXAMINATIONS:
        raise EndedError(f"{current} can't become {state}.")
    move_examination(current, state, actor=actor, finished_at=clock.now(), **fields)
    examination.refresh_from_db()


@transaction.atomic
def _end_lost(examination: Examination, silent_since: datetime) -> None:
    lost = Examination.objects.select_for_update(of=("self",)).filter(
        pk=examination.pk, state=ExaminationState.RUNNING, heartbeat_at__lt=silent_since
    )
    # Its machine may have sent a heartbeat in the meantime.
    if lost.exists():
        _end(
            examination,
            ExaminationState.BROKEN,
            reason=f"The machine {examination.machine} stopped sending heartbeats. Request the examination again.",
        )


def _storable(value: Any) -> Any:
    """Return JSON whose texts the database stores: a method chooses what its problems quote."""
    match value:
        case str():
            return shorten(value, MAX_TEXT_CHARACTERS)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {name: _storable(item) for name, item in value.items()}
        case _:
            return value
