"""The challenge of a training record, or of an index of messages: what is opened of the run follows from it.

The site draws it when it has the record, which commits to everything that may be opened, and draws one for each run
token. So nobody knows it before the record is fixed, and nobody gets another one for another record: the token belongs
to the first record that is uploaded with it, whatever becomes of the draft. The same record gets the same challenge
wherever it is uploaded again.

A draw spends the token (`docvqa_site.submissions.unresolved_challenges`), and a track has so many a day for each team.

An index of messages that are too large to be attached as a whole has no token. It commits to every round by itself, and
has one challenge in each track, whoever uploads it there; another index gets another challenge, which counts toward the
same limit. Tracks draw for themselves: what one opens says nothing about what another opens, which may be more.
"""

import secrets
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.submissions.models import IndexChallenge, Run, Submission
from docvqa_site.submissions.selectors import next_challenge
from docvqa_site.submissions.tokens import token_of
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.opening import Folded, folded_rounds
from evaluator.folding.reading import read_transcript
from evaluator.messages.jobs import ArtifactKind
from evaluator.records import annex, reading


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
        token.drawn_rounds = run.submission.track.drawn_rounds
        token.save(update_fields=["record_sha256", "challenge", "drawn_rounds", "challenged_at"])
        record(actor, "run_token.challenged", token, run=str(run.pk), record_sha256=sha256)
    run.challenge, run.drawn_rounds = token.challenge, token.drawn_rounds
    run.save(update_fields=["challenge", "drawn_rounds"])


def draw_for_index(run: Run, sha256: str, actor: User) -> None:
    """Give a draft's run the challenge of its index of messages, which has this SHA-256.

    The caller holds the lock of the team. Raises `ProblemError` (`E_CHALLENGE_LIMIT`) as above.
    """
    submission = run.submission
    own = {"index_sha256": sha256, "track": submission.track}
    found = IndexChallenge.objects.filter(**own).first()
    if found is None:
        now = timezone.now()
        _reject_beyond_limit(submission, now)
        found, _ = IndexChallenge.objects.get_or_create(
            **own,
            defaults={
                "team": submission.team,
                "challenge": secrets.token_hex(32),
                "drawn_rounds": submission.track.drawn_rounds,
                "challenged_at": now,
            },
        )
        record(actor, "index.challenged", found, run=str(run.pk), index_sha256=sha256)
    run.challenge, run.drawn_rounds = found.challenge, found.drawn_rounds
    run.save(update_fields=["challenge", "drawn_rounds"])


def reject_other_messages(run: Run, size_bytes: int, filename: str) -> Folded | None:
    """Return the rounds whose messages a file of this size must have; None without an index.

    Raises `ProblemError` (`E_TRANSCRIPT_MESSAGE`): the file has another size than the messages that the run's index
    lists, or than those that its challenge asks for; or it is too large to be all of the run's messages.
    """
    folded = expected_messages(run)
    if folded is None and size_bytes > settings.WHOLE_MESSAGES_BYTES:
        raise ProblemError.of(
            ErrorCode.TRANSCRIPT_MESSAGE,
            message="The file is too large to hold all messages of a run, and no rounds were drawn.",
            where=filename,
            expected=f"at most {settings.WHOLE_MESSAGES_BYTES} bytes",
            found=f"{size_bytes} bytes",
            next_step="Upload transcript.jsonl first. The site then draws the rounds whose messages it needs.",
        )
    if folded and not folded.is_drawn and size_bytes != folded.size_bytes:
        raise ProblemError.of(
            ErrorCode.TRANSCRIPT_MESSAGE,
            where=filename,
            expected=f"{folded.size_bytes} bytes, those of the messages in transcript.jsonl of the draft",
            found=f"{size_bytes} bytes",
            next_step="Upload transcript.jsonl and messages.bin of the same run folder.",
        )
    if folded and size_bytes != folded.size_bytes:
        raise ProblemError.of(
            ErrorCode.TRANSCRIPT_MESSAGE,
            message="The file doesn't have the messages of the rounds that the site has drawn.",
            where=filename,
            expected=f"{folded.size_bytes} bytes, for rounds {', '.join(str(line.round) for line in folded.rounds)}",
            found=f"{size_bytes} bytes",
            next_step="Create the file with the command on the draft's page, or let `pfl submit` do so.",
        )
    return folded


def expected_messages(run: Run) -> Folded | None:
    """Return the rounds whose messages a run attaches: those of its index, or drawn ones; None without an index."""
    index = run.artifacts.filter(kind=ArtifactKind.TRANSCRIPT).select_related("upload").first()
    if index is None:
        return None
    with (
        current_store().open(index.upload.store_key) as stored,
        NamedTemporaryFile(prefix="pfl-index-") as file,
    ):
        # At most 4 MiB, as was checked when it arrived.
        file.write(stored.read())
        file.flush()
        return folded_rounds(read_transcript(Path(file.name)), run.challenge or None, run.rounds_to_draw)


def _reject_beyond_limit(submission: Submission, now: datetime) -> None:
    track = submission.track
    if free_at := next_challenge(submission.team, track, now):
        raise ProblemError.of(
            ErrorCode.CHALLENGE_LIMIT,
            where=track.slug,
            expected=f"at most {track.challenges_per_day} challenges in 24 hours",
            next_step=f"The next one is possible on {free_at:%B %-d at %H:%M} UTC. Files that have a challenge can be "
            "uploaded at any time.",
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
