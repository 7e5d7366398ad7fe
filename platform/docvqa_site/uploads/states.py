"""The states of uploads: the allowed transitions, which `docvqa_site.audit.transitions.move` makes."""

from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.transitions import Transitions, move
from docvqa_site.uploads.models import Upload, UploadState

UPLOAD_TRANSITIONS: Transitions = {
    UploadState.OPEN: frozenset({UploadState.COMPLETED, UploadState.ABORTED, UploadState.EXPIRED}),
    # The file of a completed upload may be removed: another one replaced it, or its draft was withdrawn.
    UploadState.COMPLETED: frozenset({UploadState.ABORTED, UploadState.EXPIRED}),
    UploadState.ABORTED: frozenset(),
    # Removed by a rule of retention, which the audit entry names.
    UploadState.EXPIRED: frozenset(),
}


def move_upload(upload: Upload, state: UploadState, *, actor: User | None = None, **details: str) -> None:
    """Move an upload to `state`, with `details` in the audit entry. The caller holds the row's lock.

    Raises `IllegalTransitionError` as `docvqa_site.audit.transitions.move`.
    """
    move(upload, state, UPLOAD_TRANSITIONS, actor, {"finished_at": timezone.now()}, **details)
