"""The locks of teams and submissions. A team's is taken before one of its submissions', never after."""

from uuid import UUID

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
