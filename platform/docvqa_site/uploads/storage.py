"""How much may be stored: by a team, and by all of them."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q, QuerySet, Sum

from docvqa_site.teams.models import Team
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.store import Store
from evaluator.errors import ErrorCode, ProblemError

STORED = Q(state__in=[UploadState.OPEN, UploadState.COMPLETED])
# Submitted files are limited by the number of submissions, and a team can't free them.
SUBMITTED = Q(
    artifacts__submission__state__in=["submitted", "withdrawn"],
    artifacts__state__in=["attached", "superseded"],
)
# No submission has the file: an upload with a pending artifact has no other one.
UNATTACHED = Q(artifacts__isnull=True) | Q(artifacts__state="pending")


@dataclass(frozen=True)
class StorageUse:
    """The storage of a team's drafts and unfinished uploads, in bytes."""

    used_bytes: int
    limit_bytes: int

    @property
    def left_bytes(self) -> int:
        return max(0, self.limit_bytes - self.used_bytes)


def storage_of(team: Team) -> StorageUse:
    """Return what the team's drafts and unfinished uploads take; what it has submitted doesn't count."""
    return StorageUse(_total(team.uploads.filter(STORED).exclude(SUBMITTED)), settings.TEAM_STORAGE_BYTES)


def nearly_full(part: float, most: int) -> list[tuple[int, str, StorageUse]]:
    """Return the teams that use this part of their storage or more, the fullest first, `most` at most.

    Each with its key, its name and its use.
    """
    limit: int = settings.TEAM_STORAGE_BYTES
    of_teams = Upload.objects.filter(STORED, team__isnull=False).exclude(SUBMITTED).order_by()
    uses = of_teams.values_list("team", "team__name").annotate(used=Sum("size_bytes"))
    full = uses.filter(used__gte=part * limit).order_by("-used", "team__name")
    return [(team, name, StorageUse(used, limit)) for team, name, used in full[:most]]


def reject_beyond_quota(team: Team, size_bytes: int) -> None:
    """Raise `ProblemError` (`E_STORAGE_QUOTA`) if the team has no room for a file of this size."""
    use = storage_of(team)
    if size_bytes > use.left_bytes:
        raise ProblemError.of(
            ErrorCode.STORAGE_QUOTA,
            expected=f"{use.limit_bytes} bytes at most",
            found=f"{use.used_bytes} bytes, and {size_bytes} bytes more",
        )


def reject_when_full(store: Store, size_bytes: int) -> None:
    """Raise `ProblemError` (`E_STORE_FULL`) if, with so many bytes more, the store would come too near its limits."""
    free = store.free_bytes()
    is_full = free is not None and free - size_bytes < settings.DISK_RESERVE_BYTES
    budget: int = settings.STORE_BUDGET_BYTES
    if is_full or (budget and _total(Upload.objects.filter(STORED)) + size_bytes > budget):
        raise ProblemError.of(ErrorCode.STORE_FULL)


def _total(uploads: QuerySet[Upload]) -> int:
    return uploads.aggregate(total=Sum("size_bytes"))["total"] or 0
