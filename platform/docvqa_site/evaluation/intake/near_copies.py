"""Runs of a track with nearly the same weights, as organizers see them. Nothing is rejected or public by it.

Equal weights count as the same checkpoint where a run was judged; see `docvqa_site.evaluation.intake.judgments`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import F, Q, QuerySet

from docvqa_site.evaluation.models import NearCopy, StoredSample
from docvqa_site.submissions.models import Run, Submission
from evaluator.checkpoints.weight_sample import FEWEST, Likeness, likenesses
from evaluator.messages.jobs import WeightSample

# The samples that are compared at once, 8 kB each.
BATCH = 500
# Older ones have been looked at, or never will be.
SHOWN_FOR = timedelta(days=30)


def store(run: Run, sample: WeightSample, now: datetime) -> None:
    """Store the sample of a run, and have it compared with others once it is committed."""
    fields = {"key_id": sample.key_id, "per_tensor": sample.per_tensor, "changes": sample.changes}
    StoredSample.objects.update_or_create(run=run, defaults=fields)
    # Of two that are stored at once each would miss the other before.
    transaction.on_commit(partial(compare, run, sample, now), robust=True)


@transaction.atomic
def compare(run: Run, sample: WeightSample, now: datetime) -> None:
    """Store which other runs of the track the run is near to, in place of what was found of an earlier attempt."""
    NearCopy.objects.filter(Q(run=run) | Q(other=run)).delete()
    # The other one may have found this one just now.
    NearCopy.objects.bulk_create(
        (_near_copy(run, other, found, now) for other, found in _near(run, sample)), ignore_conflicts=True
    )


def same_weights(run: Run) -> QuerySet[Run]:
    """Return the other runs of the track with the very changes that were sampled of this one, whatever their files."""
    sample = StoredSample.objects.filter(run=run).first()
    if sample is None or np.count_nonzero(np.frombuffer(sample.changes, "<f4")) < FEWEST:
        return Run.objects.none()
    return Run.objects.filter(
        submission__track=run.submission.track_id,
        weight_sample__key_id=sample.key_id,
        weight_sample__per_tensor=sample.per_tensor,
        weight_sample__changes=bytes(sample.changes),
    ).exclude(pk=run.pk)


def _near_copy(run: Run, other: Run, found: Likeness, now: datetime) -> NearCopy:
    earlier, later = sorted((run, other), key=lambda one: (one.submission.submitted_at or now, one.pk))
    return NearCopy(run=later, other=earlier, agreement=found.agreement, cosine=found.cosine, found_at=now)


def near_copies_of(run: Run, judged: QuerySet[Submission]) -> QuerySet[NearCopy]:
    """Return the runs near to this one, of the submissions that the organizer may judge."""
    return _with_runs(_judged(NearCopy.objects.filter(Q(run=run) | Q(other=run)), judged))


def near_copies_of_other_teams(
    judged: QuerySet[Submission], now: datetime, length: int
) -> QuerySet[NearCopy]:
    """Return the runs of different teams that were found lately, the newest first."""
    found = NearCopy.objects.filter(found_at__gt=now - SHOWN_FOR)
    others = _judged(found, judged).exclude(run__submission__team=F("other__submission__team"))
    # By their keys: to plan one query of nine tables takes PostgreSQL longer than all else on the desk.
    return _with_runs(NearCopy.objects.filter(pk__in=list(others.values_list("pk", flat=True)[:length])))


def _judged(found: QuerySet[NearCopy], judged: QuerySet[Submission]) -> QuerySet[NearCopy]:
    return found.filter(run__submission__in=judged, other__submission__in=judged)


def _with_runs(found: QuerySet[NearCopy]) -> QuerySet[NearCopy]:
    deferred = [f"{name}__{field}" for name in ("run", "other") for field in ("results", "pending", "rules")]
    return found.select_related("run__submission__team", "other__submission__team").defer(*deferred)


def _near(run: Run, sample: WeightSample) -> list[tuple[Run, Likeness]]:
    others = StoredSample.objects.filter(
        run__submission__track=run.submission.track_id,
        key_id=sample.key_id,
        per_tensor=sample.per_tensor,
    ).exclude(run=run)
    near: dict[UUID, Likeness] = {}
    for batch in _in_batches(others.values_list("run", "changes").iterator(BATCH)):
        found = likenesses(sample.changes, batch, sample.per_tensor)
        near |= {key: likeness for key, likeness in found.items() if likeness.is_near}
    runs = Run.objects.select_related("submission").in_bulk(list(near))
    return [(runs[key], likeness) for key, likeness in near.items() if key in runs]


def _in_batches(rows: Iterator[tuple[UUID, bytes | memoryview]]) -> Iterator[dict[UUID, bytes]]:
    while batch := {key: bytes(changes) for key, changes in islice(rows, BATCH)}:
        yield batch
