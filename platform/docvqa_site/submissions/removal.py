"""What it means to remove runs, or all of a submission: in sentences that its team reads before it does so."""

from collections.abc import Iterable
from uuid import UUID

from docvqa_site.submissions.models import Run, RunToken, Submission, SubmissionState
from docvqa_site.submissions.states import IN_EVALUATION


def removal_note(runs: Iterable[Run]) -> str:
    """Return what stays behind when runs of one submission are removed; empty if nothing does.

    A challenge was drawn for each of their training records. Only a run for a rank with the same record resolves it.
    """
    return _note(len(_left_unresolved(runs)))


def removal_notes(drafts: Iterable[Submission]) -> list[tuple[Submission, str]]:
    """Return each draft with what stays behind when it is discarded; their runs should be prefetched."""
    listed = list(drafts)
    left = _left_unresolved(run for draft in listed for run in draft.runs.all())
    return [(draft, _note(sum(run.challenge in left for run in draft.runs.all()))) for draft in listed]


def removal_notes_of_runs(runs: Iterable[Run]) -> dict[UUID, str]:
    """Return for each of these runs of one submission, by its key, what stays behind when it alone is removed."""
    listed = list(runs)
    left = _left_unresolved(listed)
    return {run.pk: _note(int(run.challenge in left)) for run in listed}


def _left_unresolved(runs: Iterable[Run]) -> set[str]:
    """Return the challenges of these runs that no other run resolves, as far as is known."""
    removed = {run.pk: run.challenge for run in runs if run.challenge}
    if not removed:
        return set()
    others = Run.objects.filter(
        challenge__in=removed.values(), state__in=IN_EVALUATION, submission__practice=False
    ).exclude(pk__in=removed)
    own = RunToken.objects.filter(challenge__in=removed.values(), run__isnull=True)
    return set(own.exclude(challenge__in=others.values("challenge")).values_list("challenge", flat=True))


def _note(unresolved: int) -> str:
    """Return what so many unresolved challenges of a submission mean."""
    if not unresolved:
        return ""
    subject, same = (
        ("The challenge of its training record stays", "record")
        if unresolved == 1
        else (f"The challenges of its {unresolved} training records stay", "records")
    )
    return (
        f"{subject} unresolved, which flags every later run of your team in this track and is shown to reviewers, "
        f"until you submit the same {same} for a rank. Keep the run folder if you may still do so."
    )


def withdrawal_warning(submission: Submission) -> str:
    """Return what a team loses by withdrawing a submission, or by discarding a draft."""
    if submission.state == SubmissionState.DRAFT:
        effect = "Its files will be deleted. This can't be undone."
    elif submission.practice:
        effect = f"Its page will say that it was withdrawn. The {submission.slot} is not returned."
    else:
        effect = (
            "This removes it from the leaderboards and can't be undone. If it was public, this page will say that it "
            f"was withdrawn, and when. The {submission.slot} is not returned. Only your team can submit its files "
            "again, as another submission."
        )
    return f"{effect} {removal_note(submission.runs.all())}".strip()
