"""How ranks change. The clock records it: from the present rules and runs the boards of the past don't follow."""

from collections.abc import Collection, Iterable
from datetime import date, timedelta
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from docvqa_site.boards.models import RankRecord
from docvqa_site.boards.ordering import ranked_places
from docvqa_site.boards.selection import EVERYTHING
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run

# What a board's marks compare the present rank with.
BACK = timedelta(days=7)


def record_ranks(day: date | None = None) -> int:
    """Record the ranks that differ from the last recorded ones, and return how many do."""
    day = day or timezone.localdate()
    found = [
        RankRecord(run_id=run, day=day, rank=rank)
        for track in Track.objects.all()
        for run, rank in _changed(track)
    ]
    RankRecord.objects.bulk_create(
        found,
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["run", "day"],
        update_fields=["rank"],
    )
    return len(found)


def _changed(track: Track) -> Iterable[tuple[UUID, int | None]]:
    """Yield the runs of a track whose rank isn't the one that was recorded last, with their rank."""
    now = {
        place.run: place.rank
        for budget in track.run_budgets()
        for place in ranked_places(track, budget, EVERYTHING, 0, None)
    }
    # Those of boards that were removed lost their rank as well.
    before = _last_ranks(Run.objects.filter(submission__track=track, rank_records__isnull=False).distinct())
    for run, rank in now.items():
        if before.get(run) != rank:
            yield run, rank
    for run, rank in before.items():
        if rank is not None and run not in now:
            yield run, None


def ranks_before(track: Track, runs: Collection[UUID], today: date) -> dict[UUID, int]:
    """Return the rank of each of these runs a week before today, 0 where it had none.

    Nothing where no ranks were recorded by then.
    """
    then = today - BACK
    if not runs or not RankRecord.objects.filter(run__submission__track=track, day__lte=then).exists():
        return {}
    before = _last_ranks(Run.objects.filter(pk__in=runs), then)
    return {run: rank or 0 for run, rank in before.items()}


def histories(runs: Collection[UUID]) -> dict[UUID, list[RankRecord]]:
    """Return the changes of these runs' ranks, the oldest first."""
    found: dict[UUID, list[RankRecord]] = {run: [] for run in runs}
    for record in RankRecord.objects.filter(run__in=runs).order_by("day"):
        earlier = found[record.run_id]
        # One that came back within a day was recorded again.
        if not earlier or earlier[-1].rank != record.rank:
            earlier.append(record)
    return found


def _last_ranks(runs: QuerySet[Run], until: date | None = None) -> dict[UUID, int | None]:
    """Return the rank of each run by its last record, up to a day; None where it had none."""
    records = RankRecord.objects.filter(run=OuterRef("pk")).order_by("-day")
    if until is not None:
        records = records.filter(day__lte=until)
    last = runs.order_by().annotate(last_rank=Subquery(records.values("rank")[:1]))
    return dict(last.values_list("pk", "last_rank"))
