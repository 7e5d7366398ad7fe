"""The challenge of a training record: what the record's annex opens follows from it.

The site draws it when it has the record, which commits to everything that may be opened, and draws one for each run
token. So nobody knows it before the record is fixed, and nobody gets another one for another record: the token belongs
to the first record that is uploaded with it, whatever becomes of the draft. The same record gets the same challenge
wherever it is uploaded again.
"""

import secrets

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records import annex, reading
from portal.accounts.models import User
from portal.audit.models import record
from portal.submissions.models import Run
from portal.submissions.tokens import token_of


def draw_challenge(run: Run, line: bytes, sha256: str, actor: User) -> None:
    """Give a draft's run the challenge of its record, which has this first line and SHA-256. In a transaction.

    Raises `ProblemError`: as `reading.read_first_line` where the line isn't a record's, and `E_RECORD_TOKEN` where the
    token isn't one that the site issued to the team for the track, or came with another record before.
    """
    token = token_of(run, reading.read_first_line(line).run_token)
    if token.record_sha256 not in ("", sha256):
        raise ProblemError.of(
            ErrorCode.RECORD_TOKEN,
            where=f"run_token {token.token}",
            expected=f"the record that came first with this token, SHA-256 {token.record_sha256}",
            found=f"another one, SHA-256 {sha256}",
        )
    if not token.record_sha256:
        token.record_sha256, token.challenge = sha256, secrets.token_hex(32)
        token.save(update_fields=["record_sha256", "challenge"])
        record(actor, "run_token.challenged", token, run=str(run.pk), record_sha256=sha256)
    run.challenge = token.challenge
    run.save(update_fields=["challenge"])


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
