"""The locks of teams, tracks, submissions and checkpoints, always taken in this order."""

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Team
from evaluator.errors import ErrorCode, ProblemError

IN_WORDS = {
    SubmissionState.DRAFT: "a draft",
    SubmissionState.SUBMITTED: "a submitted submission",
    SubmissionState.WITHDRAWN: "a withdrawn submission",
}


def lock_team(team_id: int) -> None:
    """Lock the team's row; rows that refer to it may still be added."""
    Team.objects.select_for_update(no_key=True).get(pk=team_id)


def hold_track(track_id: int) -> None:
    """Keep organizers from changing the track in this transaction; submissions of other teams needn't wait for it.

    SQLite needs no lock: it has one writer at a time.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM challenge_track WHERE id = %s FOR SHARE", [track_id])


def lock_checkpoints(track_id: int, hashes: Iterable[str]) -> None:
    """Let other submissions of a checkpoint of these SHA-256 to the track wait for the end of this transaction."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for sha256 in sorted(set(hashes)):
                name = f"checkpoint:{track_id}:{sha256}"
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def lock_submission(key: UUID, *states: SubmissionState) -> Submission:
    """Return the submission, its row locked, with its team, track and phase.

    Raises `ProblemError` (`E_SUBMISSION_STATE`) unless it is in one of the states; without any, its state is free.
    """
    current = (
        Submission.objects.select_for_update(of=("self",))
        .select_related("team", "track", "phase")
        .get(pk=key)
    )
    if states and current.state not in states:
        raise wrong_state(current, " or ".join(IN_WORDS[state] for state in states))
    return current


def wrong_state(submission: Submission, expected: str) -> ProblemError:
    """Return the error for a submission in a state in which it can't be changed so."""
    return ProblemError.of(
        ErrorCode.SUBMISSION_STATE, expected=expected, found=f"one that is {submission.state}"
    )
