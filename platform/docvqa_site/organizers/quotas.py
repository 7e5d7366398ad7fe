"""Teams that have used up their submissions of the day, or nearly all of their storage, in two queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.template.defaultfilters import pluralize

from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import ExtraSubmissions, Submission
from docvqa_site.submissions.quota import WINDOW
from docvqa_site.ui.templatetags.ui import readable_bytes
from docvqa_site.uploads.storage import nearly_full

# The part of a team's storage from which on it is nearly used up.
NEAR = 0.9


@dataclass(frozen=True)
class NearQuota:
    """A team, by its key and its name, and what it has used of what."""

    team: int
    name: str
    used: str


def near_quota(
    submissions: QuerySet[Submission], tracks: Sequence[Track], now: datetime, most: int
) -> list[NearQuota]:
    """Return the teams near their quota, `most` of each kind at most.

    Baselines, which are the organizers' own, are left out. What members of a team submitted with another team counts
    against their quota too, and is not looked at here.
    `tracks` have their phases prefetched; those that take no submissions now are left out.
    """
    found = _without_slots(submissions, tracks, now, most)
    for team, name, use in nearly_full(NEAR, most):
        used, limit = readable_bytes(use.used_bytes), readable_bytes(use.limit_bytes)
        found.append(NearQuota(team, name, f"{used} of {limit} of storage for drafts"))
    return found


def _without_slots(
    submissions: QuerySet[Submission], tracks: Sequence[Track], now: datetime, most: int
) -> list[NearQuota]:
    """Return the teams that have no slot left, with what they used."""
    open_tracks = {track.pk: track for track in tracks if not track.closed_because(now)}
    counted = submissions.filter(
        submitted_at__gt=now - WINDOW, refunded_at=None, is_baseline=False, track__in=open_tracks
    )
    by_team = counted.order_by().values_list("track", "team", "team__name")
    used = by_team.annotate(count=Count("pk"))
    limits = {key: track.slots_per_day(now) for key, track in open_tracks.items()}
    near = used.filter(count__gte=min(limits.values(), default=0)).annotate(extra=_granted(now - WINDOW))
    found = []
    for key, team, name, count, extra in near.order_by("track", "team__name"):
        limit = limits[key] + (extra or 0)
        if count >= limit:
            words = f"{count} submission{pluralize(count)} in the last 24 hours in {open_tracks[key]}"
            found.append(NearQuota(team, name, f"{words}, with a quota of {limit}"))
    return found[:most]


def _granted(since: datetime) -> Subquery:
    """Return how many slots the team of a group was granted in its track, as a column; null where none."""
    granted = ExtraSubmissions.objects.filter(
        granted_at__gt=since, track=OuterRef("track"), team=OuterRef("team")
    )
    return Subquery(granted.order_by().values("team").annotate(total=Sum("count")).values("total"))
