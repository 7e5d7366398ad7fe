"""The challenge of a training record: what the record's annex opens follows from it.

The site draws it when it has the record, which commits to everything that may be opened, and draws one for each run
token. So nobody knows it before the record is fixed, and nobody gets another one for another record: the token belongs
to the first record that is uploaded with it, whatever becomes of the draft. The same record gets the same challenge
wherever it is uploaded again.

A draw spends the token (`portal.submissions.tries`), and a track has so many a day for each team.
"""

import secrets
from datetime import datetime

from django.utils import timezone

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records import annex, reading
from portal.accounts.models import User
from portal.audit.models import record
from portal.submissions.models import Run, Submission
from portal.submissions.selectors import next_challenge
from portal.submissions.tokens import token_of


def draw_challenge(run: Run, line: bytes, sha256: str, actor: User) -> None:
    """Give a draft's run the challenge of its record, which has this first line and SHA-256.

    The caller holds the lock of the team, so that what is drawn at once is counted.

    Raises `ProblemError`: as `reading.read_first_line` where the line isn't a record's; `E_RECORD_TOKEN` where the
    token isn't one that the site issued to the team for the track, or came with another record before;
    `E_CHALLENGE_LIMIT` where the record is new and the team has used up the day's challenges.
    """
    token = token_of(run, reading.read_first_line(line).run_token)
    if token.record_sha256 not in ("", sha256):
        raise ProblemError.of(
            ErrorCode.RECORD_TOKEN,
            where=f"run_token {token.token}",
            expected=f"the first record uploaded with this token, SHA-256 {token.record_sha256}",
            found=f"another one, SHA-256 {sha256}",
        )
    if not token.record_sha256:
        now = timezone.now()
        _reject_beyond_limit(run.submission, now)
        token.record_sha256, token.challenge, token.challenged_at = sha256, secrets.token_hex(32), now
        token.save(update_fields=["record_sha256", "challenge", "challenged_at"])
        record(actor, "run_token.challenged", token, run=str(run.pk), record_sha256=sha256)
    run.challenge = token.challenge
    run.save(update_fields=["challenge"])


def _reject_beyond_limit(submission: Submission, now: datetime) -> None:
    track = submission.track
    if free_at := next_challenge(submission.team, track, now):
        raise ProblemError.of(
            ErrorCode.CHALLENGE_LIMIT,
            where=track.slug,
            expected=f"at most {track.challenges_per_day} challenges in 24 hours",
            next_step=f"The next one is possible on {free_at:%B %-d at %H:%M} UTC. Records that have a challenge can "
            "be uploaded at any time.",
        )


def reject_other_answer(run: Run, line: bytes) -> None:
    """Raise `ProblemError` unless the annex with this first line answers the challenge of the run's record.

    `E_RECORD_CHALLENGE`, or `E_RECORD_ANNEX` where the line isn't an annex's.
    """
    found = annex.read_first_line(line).challenge
    if found == run.challenge:
        return
    raise ProblemError.of(
        ErrorCode.RECORD_CHALLENGE,
        where="line 1, challenge",
        expected=run.challenge or "the challenge that the site draws when it has the training record",
        found=found,
    )
