"""Teams that have used up their submissions of the day, or nearly all of their storage, in three queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet
from django.template.defaultfilters import pluralize

from portal.challenge.models import Track
from portal.submissions.models import Submission
from portal.submissions.quota import WINDOW
from portal.teams.models import Team
from portal.ui.templatetags.ui import readable_bytes
from portal.uploads.storage import nearly_full

# The part of a team's storage from which on it is nearly used up.
NEAR = 0.9


@dataclass(frozen=True)
class NearQuota:
    """A team, and what it has used of what."""

    team: Team
    used: str


def near_quota(
    submissions: QuerySet[Submission], tracks: Sequence[Track], now: datetime, most: int
) -> list[NearQuota]:
    """Return the teams near their quota, `most` of each kind at most.

    What members of a team submitted with another team counts against their quota too, and is not looked at here.

    Args:
        submissions: Those that may be counted.
        tracks: With their phases prefetched; those that take no submissions now are left out.
    """
    used_up = _without_slots(submissions, tracks, now, most)
    storage = nearly_full(NEAR, most)
    teams = Team.objects.in_bulk([*(key for key, _ in used_up), *(key for key, _ in storage)])
    return [
        *(NearQuota(teams[key], text) for key, text in used_up),
        *(
            NearQuota(
                teams[key],
                f"{readable_bytes(use.used_bytes)} of {readable_bytes(use.limit_bytes)} of storage for drafts",
            )
            for key, use in storage
        ),
    ]


def _without_slots(
    submissions: QuerySet[Submission], tracks: Sequence[Track], now: datetime, most: int
) -> list[tuple[int, str]]:
    """Return the teams that have no slot left, with what they used."""
    limits = {track.pk: track.slots_per_day(now) for track in tracks if not track.closed_because(now)}
    names = {track.pk: str(track) for track in tracks}
    counted = submissions.filter(submitted_at__gt=now - WINDOW, refunded_at=None, track__in=limits)
    used = counted.order_by().values_list("track", "team").annotate(count=Count("pk"))
    found = [
        (
            team,
            f"{count} of {limits[track]} submission{pluralize(limits[track])} of 24 hours in {names[track]}",
        )
        for track, team, count in used.order_by("track", "team")
        if count >= limits[track]
    ]
    return found[:most]
