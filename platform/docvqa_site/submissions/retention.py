"""What is removed after some time, so that storage doesn't grow without end. One rule is one function.

The periods are in `docvqa_site.periods`, and what each rule removes is in `docs/storage.md`. A setting of 0 days turns
its rule off.
The upload of a removed file stays, as expired, with its size and SHA-256, and an audit entry names the rule. Nothing is
removed of a run that waits for an evaluation.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import transaction
from django.db.models import Exists, F, Max, Model, OuterRef, QuerySet, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone

from docvqa_site.challenge.models import Phase, Track
from docvqa_site.mail.models import OutgoingMail
from docvqa_site.notifications.models import Notification
from docvqa_site.periods import MOST_NOTIFICATIONS, cutoff
from docvqa_site.submissions.models import Artifact, Run, RunState, Submission, SubmissionState
from docvqa_site.uploads import services as uploads
from docvqa_site.uploads.models import UploadState
from docvqa_site.uploads.stores import current_store
from evaluator.messages.jobs import ArtifactKind

logger = logging.getLogger(__name__)

ModelT = TypeVar("ModelT", bound=Model)

# Of one rule at a time, so that no report waits for long behind it.
BATCH = 500
ENDED = [RunState.SCORED, RunState.REJECTED]
WAITING = [RunState.QUEUED, RunState.RUNNING]


def clean_up(now: datetime | None = None, limit: int = BATCH) -> dict[str, int]:
    """Apply every rule, and return how many things each has removed; `limit` each at most."""
    now = now or timezone.now()
    counts = {rule: remove(now, limit) for rule, remove in RULES.items()}
    if any(counts.values()):
        logger.info("Removed by the rules of retention: %s", counts)
    return counts


def remove_uploads(now: datetime, limit: int) -> int:
    """Remove unfinished uploads and files that nothing refers to."""
    before = _before("uploads", now)
    # What a crash has left in the store, and no upload knows of.
    current_store().remove_unfinished(before)
    return _each(uploads.abandoned(before), limit, lambda upload: uploads.expire(upload, rule="uploads"))


def remove_draft_files(now: datetime, limit: int) -> int:
    """Remove the files of drafts to which none was added for long."""
    untouched = untouched_drafts(_before("drafts", now))
    return _each(untouched, limit, _remove_files)


def remove_checkpoints(now: datetime, limit: int) -> int:
    """Remove the checkpoints of runs whose evaluation ended, in tracks that closed long ago."""
    ended = Run.objects.filter(
        state__in=ENDED,
        submission__track__in=_closed_tracks(_before("checkpoints", now)),
        artifacts__kind=ArtifactKind.CHECKPOINT,
        artifacts__upload__state=UploadState.COMPLETED,
    )
    return _each(ended, limit, _remove_checkpoint)


def remove_mails(now: datetime, limit: int) -> int:
    """Remove mails that were delivered or given up long ago. Those that wait stay."""
    before = cutoff("mails", now)
    if before is None:
        return 0
    ended = OutgoingMail.objects.annotate(ended_at=Coalesce("delivered_at", "failed_at"))
    old = ended.filter(ended_at__lt=before).order_by("ended_at", "pk").values_list("pk", flat=True)
    return OutgoingMail.objects.filter(pk__in=list(old[:limit])).delete()[0]


def remove_notifications(now: datetime, limit: int) -> int:
    """Remove notifications that are old, and the oldest of people who have many."""
    old = []
    if before := cutoff("notifications", now):
        old = list(Notification.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:limit])
    place = Window(RowNumber(), partition_by="user", order_by=[F("created_at").desc(), F("pk").desc()])
    ranked = Notification.objects.order_by().annotate(place=place).filter(place__gt=MOST_NOTIFICATIONS)
    surplus = list(ranked.values_list("pk", flat=True)[:limit])
    return Notification.objects.filter(pk__in=[*old, *surplus]).delete()[0]


def _each(rows: QuerySet[ModelT], limit: int, remove: Callable[[ModelT], int | None]) -> int:
    """Call `remove` with each of the rows, locked, in a transaction of its own; return how many things it removed.

    One that has changed by the time it is locked, so that the rule no longer applies, is left alone.
    """
    removed = 0
    for key in list(rows.values_list("pk", flat=True)[:limit]):
        with transaction.atomic():
            row = rows.model._default_manager.select_for_update().filter(pk=key).first()
            if row is not None and rows.filter(pk=key).exists():
                count = remove(row)
                removed += 1 if count is None else count
    return removed


def _closed_tracks(before: datetime) -> QuerySet[Track]:
    """Return the tracks whose last phase ended before that time."""
    later = Phase.objects.filter(track=OuterRef("pk")).exclude(ends_at__lt=before)
    return Track.objects.filter(~Exists(later), phases__isnull=False).distinct()


def remove_leftovers(now: datetime, limit: int) -> int:
    """Delete what the store still holds of removed files, and of uploads that nothing refers to."""
    return uploads.remove_leftovers(limit, now)


def remove_sessions(_now: datetime, _limit: int) -> int:
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    count = expired.count()
    call_command("clearsessions")
    return count


RULES: dict[str, Callable[[datetime, int], int]] = {
    "uploads": remove_uploads,
    "drafts": remove_draft_files,
    "checkpoints": remove_checkpoints,
    "leftovers": remove_leftovers,
    "sessions": remove_sessions,
    "notifications": remove_notifications,
    "mails": remove_mails,
}


def untouched_drafts(before: datetime) -> QuerySet[Submission]:
    """Return the drafts that have files, where no file and no pending one was added since `before`."""
    drafts = Submission.objects.filter(state=SubmissionState.DRAFT).annotate(
        touched_at=Max("artifacts__created_at")
    )
    return drafts.filter(Exists(Artifact.objects.filter(submission=OuterRef("pk"))), touched_at__lt=before)


def _before(rule: str, now: datetime) -> datetime:
    """Return the time before which a rule applies; one that is off never does."""
    return cutoff(rule, now) or datetime.fromtimestamp(0, UTC)


def _remove_checkpoint(run: Run) -> None:
    checkpoints = run.artifacts.filter(kind=ArtifactKind.CHECKPOINT)
    # Another submission that was made from this one may wait for its evaluation.
    for artifact in checkpoints.exclude(upload__artifacts__run__state__in=WAITING):
        uploads.expire(artifact.upload, rule="checkpoints")


def _remove_files(draft: Submission) -> int:
    """Remove the files of a locked draft, and return their number."""
    artifacts = list(draft.artifacts.select_related("upload"))
    for artifact in artifacts:
        artifact.delete()
        # What a submission was made of, the draft shares with it.
        if not artifact.upload.artifacts.exists():
            uploads.expire(artifact.upload, rule="drafts")
    return len(artifacts)
