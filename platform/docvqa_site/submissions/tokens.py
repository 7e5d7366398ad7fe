"""Run tokens: issued before a training, carried by its record, and claimed by the run that the record belongs to.

One token is for one training: it belongs to the first record that is uploaded with it
(`submissions.challenges`), and one run at a time has it. A team that must submit the very same training again,
after its run was rejected, failed or was withdrawn, submits the very same record; the new run then takes the token
over. A run for practice never has the token, so that its challenge stays unresolved until a run for a rank has it.
"""

import secrets
from collections.abc import Sequence

from django.db import transaction

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.registering import registration_problems
from docvqa_site.submissions.models import Run, RunState, RunToken, SubmissionState
from docvqa_site.submissions.signals import challenges_changed
from docvqa_site.teams.models import Team
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Event
from evaluator.messages.jobs import ArtifactKind

# Of one team in one track.
MAX_OPEN_TOKENS = 1000


@transaction.atomic
def issue_token(team: Team, track: Track, user: User) -> RunToken:
    """Issue a new token for one training in the track.

    Raises `ProblemError`: `E_RUN_TOKEN` in a track where ε plays no part, or when the team has too many unused ones,
    and `E_TEAM_REGISTRATION` where the team must register before it trains.
    """
    if unregistered := registration_problems(team, track):
        raise ProblemError(*unregistered)
    if not track.kind.is_accounted:
        raise ProblemError.of(
            ErrorCode.RUN_TOKEN,
            message="The track issues no run tokens.",
            where=track.slug,
            expected="a track with privacy budgets",
        )
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    unused = RunToken.objects.filter(team=team, track=track, run__isnull=True).count()
    if unused >= MAX_OPEN_TOKENS:
        raise ProblemError.of(
            ErrorCode.RUN_TOKEN,
            message="Your team has too many unused run tokens in this track.",
            where=track.slug,
            expected=f"fewer than {MAX_OPEN_TOKENS}",
            found=unused,
        )
    token = RunToken.objects.create(team=team, track=track, token=secrets.token_urlsafe(24), issued_to=user)
    record(user, "run_token.issued", token, team=team.pk, track=track.slug)
    return token


@transaction.atomic
def take_token(team: Team, track: Track, user: User, training: str) -> RunToken:
    """Return an unused token of the team for the training of this name, which has it alone; a new one if need be.

    The same training gets the same token again, for instance after it was interrupted and started over. Else it gets
    the newest one that the user has requested and no training has taken. Those that other members requested stay: the
    site can't know whether they train with them on a machine without access to it.

    Raises `ProblemError` as `issue_token`.
    """
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    unused = RunToken.objects.filter(team=team, track=track, challenged_at__isnull=True)
    if own := unused.filter(training=training).first():
        return own
    token = unused.filter(training="", issued_to=user).first() or issue_token(team, track, user)
    token.training = training
    token.save(update_fields=["training"])
    record(user, "run_token.taken", token, training=training)
    return token


@transaction.atomic
def release_token(token: RunToken, user: User) -> None:
    """Free an unused token of a training that was stopped, for the next training of the user who requested it.

    A token whose challenge was drawn is spent and stays as it is.

    Raises `ProblemError` (`E_RUN_TOKEN`) if no training holds it, it is spent, or another user requested it.
    """
    current = RunToken.objects.select_for_update().get(pk=token.pk)
    if not is_releasable(current, user):
        raise ProblemError.of(
            ErrorCode.RUN_TOKEN,
            message="This run token can't be released.",
            where=current.token,
            expected="a token that you requested, reserved for a training run, and without a challenge",
        )
    before, current.training = current.training, ""
    current.save(update_fields=["training"])
    record(user, "run_token.released", current, training=before)


def is_releasable(token: RunToken, user: User) -> bool:
    """Return whether the user may free the token: a training of theirs holds it, and no challenge was drawn."""
    return bool(token.training) and token.challenged_at is None and token.issued_to_id == user.pk


def token_of(run: Run, text: str | None) -> RunToken:
    """Return the team's token for the run's track, its row locked. Raises `ProblemError` (`E_RECORD_TOKEN`)."""
    submission = run.submission
    token = (
        RunToken.objects.select_for_update()
        .filter(team=submission.team_id, track=submission.track_id, token=text or "")
        .first()
    )
    if token is None:
        raise _rejected("a token that the site issued to your team for this track", text or "none")
    return token


def find_token(run: Run, text: str | None) -> RunToken:
    """Return the token that the run's training record carries, its row locked, if the run may have it.

    Raises `ProblemError` (`E_RECORD_TOKEN`).
    """
    token = token_of(run, text)
    if (token.record_sha256, token.challenge) != (_record_sha256(run), run.challenge):
        raise _rejected("a token for this training alone", "one that another training record came with")
    if not run.submission.practice and token.run not in (None, run) and not _is_over(token.run):
        raise _rejected("an unused token", f"one that a run of “{token.run.submission}” has")
    return token


def claim_token(token: RunToken, run: Run, events: Sequence[Event]) -> None:
    """Give `run` a token that `find_token` returned, in the same transaction. `events` are its releases.

    A run for practice only leaves its releases.
    """
    before = token.run
    if not run.submission.practice:
        token.run = run
    token.events = [event.model_dump(mode="json") for event in events]
    token.save(update_fields=["run", "events"])
    if before != token.run:
        record(None, "run_token.claimed", token, run=str(run.pk), before=str(before.pk) if before else None)
        challenges_changed.send(sender=RunToken, team=token.team_id, track=token.track_id)


def _is_over(run: Run) -> bool:
    """Return whether the run makes no use of its token any more, so that the same training may be submitted again."""
    ended = run.state in (RunState.REJECTED, RunState.FAILED)
    return ended or run.submission.state == SubmissionState.WITHDRAWN


def _record_sha256(run: Run) -> str:
    return run.artifacts.get(kind=ArtifactKind.TRAINING_RECORD).upload.sha256


def _rejected(expected: str, found: str) -> ProblemError:
    return ProblemError.of(ErrorCode.RECORD_TOKEN, where="run_token", expected=expected, found=found)
