"""Versions of what the boards show, by which pages are cached and their ETags made.

Whoever changes something that a board shows calls `boards_changed` in the transaction of the change. The new version
becomes visible together with the change, so a page that is cached under a version is never older than that version.
"""

import uuid
from collections.abc import Sequence

from django.utils import timezone

from docvqa_site.audit.models import Version

ALL_BOARDS = "boards"
# The value of what was never changed.
FIRST = "0"


def boards_changed(track_id: int | None = None) -> None:
    """Give the boards of a track a new version, or those of all tracks. Other changes of theirs wait for this one."""
    # A random value and not a number: after a backup was restored, a number would be counted up to a second time.
    version = Version(name=_name(track_id), value=uuid.uuid4().hex, changed_at=timezone.now())
    Version.objects.bulk_create(
        [version], update_conflicts=True, unique_fields=["name"], update_fields=["value", "changed_at"]
    )


def boards_versions(track_ids: Sequence[int]) -> dict[int, str]:
    """Return the version of the boards of each track, in one query."""
    names = [ALL_BOARDS, *map(_name, track_ids)]
    values = dict(Version.objects.filter(name__in=names).values_list("name", "value"))
    common = values.get(ALL_BOARDS, FIRST)
    return {track_id: f"{common}-{values.get(_name(track_id), FIRST)}" for track_id in track_ids}


def _name(track_id: int | None) -> str:
    return ALL_BOARDS if track_id is None else f"{ALL_BOARDS}:{track_id}"
