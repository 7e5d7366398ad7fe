"""Changes to submissions: draft, files, submit, withdraw, refund."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.registering import registration_problems
from docvqa_site.submissions.arrival import Arrival, arrival_of, check_arrival
from docvqa_site.submissions.challenges import (
    draw_challenge,
    draw_for_index,
    reject_other_answer,
    reject_other_messages,
)
from docvqa_site.submissions.draft_problems import no_such_budget, problems_of
from docvqa_site.submissions.duplicates import checkpoint_hashes, reject_duplicate
from docvqa_site.submissions.judged import JUDGED_KINDS, repeats_rejected
from docvqa_site.submissions.locks import (
    hold_track,
    lock_checkpoints,
    lock_submission,
    lock_team,
    wrong_state,
)
from docvqa_site.submissions.models import (
    Artifact,
    ArtifactState,
    Refund,
    Run,
    RunState,
    Submission,
    SubmissionState,
)
from docvqa_site.submissions.proof_versions import discard_staged, reject_revision, stage
from docvqa_site.submissions.publication import new_alias, published_on_submission
from docvqa_site.submissions.quota import returns_slot
from docvqa_site.submissions.required import validate_artifact
from docvqa_site.submissions.selectors import returned_times
from docvqa_site.submissions.signals import runs_queued
from docvqa_site.submissions.states import change_listed, move_artifact, move_run, move_submission
from docvqa_site.submissions.team_news import notify_of_disqualification, notify_of_withdrawal
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import owns
from docvqa_site.uploads import services as uploads
from docvqa_site.uploads.models import Upload, UploadState
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import ArtifactKind

# Of one team in one track.
MAX_DRAFTS = 10
# For a file of one kind the site draws a challenge, which a file of another kind answers.
ANSWERED_BY = {
    ArtifactKind.TRAINING_RECORD: ArtifactKind.TRAINING_ANNEX,
    ArtifactKind.TRANSCRIPT: ArtifactKind.MESSAGES,
}
# What a team may change of a submission after it was submitted.
EDITABLE = ("description", "code_url", "paper_url")


@transaction.atomic
def create_submission(
    team: Team,
    user: User,
    track: Track,
    **text: Any,
) -> Submission:
    """Open a draft; where ε plays no part it has its one run already. `text` is what a `SubmissionForm` has validated.

    Raises `ProblemError`: `E_SUBMISSION_STATE` when the team has too many drafts in the track, `E_TEAM_REGISTRATION`
    where it must register before.
    """
    if unregistered := registration_problems(team, track):
        raise ProblemError(*unregistered)
    lock_team(team.pk)
    drafts = Submission.objects.filter(team=team, track=track, state=SubmissionState.DRAFT).count()
    if drafts >= MAX_DRAFTS:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="Your team has too many drafts in this track.",
            expected=f"fewer than {MAX_DRAFTS} drafts",
            found=drafts,
            next_step="Submit or withdraw one of them first.",
        )
    submission = Submission.objects.create(team=team, track=track, created_by=user, **text)
    record(user, "submission.created", submission, track=track.slug)
    if len(boards := track.run_budgets()) == 1:
        Run.objects.create(submission=submission, budget=boards[0])
    return submission


@transaction.atomic
def add_run(submission: Submission, budget: float | None) -> Run:
    """Return the draft's run at this budget, which is created if it doesn't exist.

    Raises `ProblemError`: `E_SUBMISSION_STATE` unless it is a draft, `E_SUBMISSION_BUDGET` when the track has no
    board for the budget.
    """
    lock_submission(submission.pk, SubmissionState.DRAFT)
    if budget not in submission.track.run_budgets():
        raise no_such_budget(submission.track, budget)
    run, _ = Run.objects.get_or_create(submission=submission, budget=budget)
    return run


@transaction.atomic
def remove_run(run: Run, actor: User) -> None:
    """Take a run and its files out of a draft. Raises `ProblemError` (`E_SUBMISSION_STATE`) unless it is one."""
    lock_submission(run.submission_id, SubmissionState.DRAFT)
    _discard_files(Artifact.objects.filter(run=run), actor)
    _discard_files(Artifact.pending.filter(run=run), actor)
    run.delete()


@transaction.atomic
def remove_file(artifact: Artifact, actor: User) -> None:
    """Take one file out of a draft, and what was made from the challenge that the site drew for it.

    Raises `ProblemError` (`E_SUBMISSION_STATE`) unless it is a draft.
    """
    lock_submission(artifact.submission_id, SubmissionState.DRAFT)
    run, kind = artifact.run, ArtifactKind(artifact.kind)
    removed = [kind]
    if run and kind in ANSWERED_BY:
        _forget_challenge(run)
        removed.append(ANSWERED_BY[kind])
    _discard_files(Artifact.objects.filter(submission=artifact.submission, run=run, kind__in=removed), actor)


def check_head(
    submission: Submission, run: Run | None, kind: str, *, filename: str, size_bytes: int, head: bytes
) -> None:
    """Check a file that may be uploaded for a draft: its place, name and size, and its beginning unless that is empty.

    Raises `ProblemError` as `validate_artifact` and `check_arrival`.
    """
    known = validate_artifact(
        submission.track, kind, of_run=run is not None, filename=filename, size_bytes=size_bytes
    )
    if head:
        check_arrival(Arrival(submission, run, known, filename, head, size_bytes))


@transaction.atomic
def start_upload(
    submission: Submission,
    run: Run | None,
    kind: str,
    user: User,
    *,
    filename: str,
    size_bytes: int,
    sha256: str,
) -> Upload:
    """Start or resume the upload of a file of a draft; `run` is None for a privacy proof.

    What has been submitted takes a revised proof, and nothing else.

    An unfinished upload of the same file in the same place is resumed; one of another file is aborted. If the very file
    is in that place already, its completed upload is returned.
    Raises `ProblemError` as `validate_artifact`, `reject_duplicate` and `uploads.create_upload`, and
    `E_SUBMISSION_STATE` unless it is a draft.
    """
    lock_team(submission.team_id)
    known = validate_artifact(
        submission.track, kind, of_run=run is not None, filename=filename, size_bytes=size_bytes
    )
    if known is ArtifactKind.PRIVACY_PROOF and submission.state == SubmissionState.SUBMITTED:
        reject_revision(lock_submission(submission.pk), sha256)
    else:
        lock_submission(submission.pk, SubmissionState.DRAFT)
    place: dict[str, Any] = {"submission": submission, "run": run, "kind": known}
    stored = Artifact.objects.filter(
        **place, state=ArtifactState.ATTACHED, upload__state=UploadState.COMPLETED
    ).select_related("upload")
    for artifact in stored.filter(upload__size_bytes=size_bytes, upload__sha256=sha256):
        return artifact.upload
    if known in JUDGED_KINDS:
        reject_duplicate(submission, known, sha256, filename)
    pending = Artifact.pending.filter(**place, upload__state=UploadState.OPEN).select_related("upload")
    for other in pending:
        if (other.upload.size_bytes, other.upload.sha256) == (size_bytes, sha256):
            return other.upload
        _discard_files([other], user)
    upload = uploads.create_upload(
        submission.team, user, filename=filename, size_bytes=size_bytes, sha256=sha256
    )
    Artifact.pending.create(**place, upload=upload)
    return upload


@dataclass(frozen=True)
class Attached:
    """A file in its place, and the names of other files of the run that were removed since they don't fit it."""

    artifact: Artifact
    removed: list[str]


def attach_upload(upload: Upload, user: User) -> Attached:
    """Complete an upload as `finish_upload`, and return what was removed from the run besides an earlier version."""
    pending = Artifact.pending.filter(upload=upload, run__isnull=False).first()
    others = _other_files(pending) if pending else {}
    artifact = finish_upload(upload, user)
    return Attached(artifact, sorted(others[key] for key in others.keys() - _other_files(artifact).keys()))


def _other_files(artifact: Artifact) -> dict[UUID, str]:
    """Return the names of the files in the other places of an artifact's run."""
    others = Artifact.objects.filter(run=artifact.run_id).exclude(kind=artifact.kind)
    return dict(others.values_list("pk", "upload__filename"))


def finish_upload(upload: Upload, user: User) -> Artifact:
    """Complete an upload and attach its file to the draft, in place of an earlier file. May be called again.

    What can be checked of it now is, and a file that is rejected isn't kept. For a training record, the site draws its
    challenge; an annex must answer it. So it does for an index of messages that are too large to be attached as a
    whole.
    Raises `ProblemError` as `uploads.complete`, `check_arrival`, `draw_challenge`, `draw_for_index` and
    `reject_other_answer`, and `E_SUBMISSION_STATE` when the submission is no draft any more.
    """
    uploads.complete(upload, actor=user)
    # The store is never asked inside a transaction, since it may take long.
    arrival = arrival_of(upload)
    try:
        if arrival is not None:
            check_arrival(arrival)
        if arrival is None:
            return attach(upload, user)
        artifact = attach(upload, user, arrival.first_line, needs_draw=arrival.needs_draw)
        if artifact.run and artifact.kind == ArtifactKind.TRANSCRIPT:
            _discard_other_messages(artifact.run, user)
        return artifact
    except ProblemError:
        _discard_rejected(upload, user)
        raise


@transaction.atomic
def _discard_rejected(upload: Upload, actor: User) -> None:
    pending = Artifact.pending.filter(upload=upload)
    if pending.exists():
        pending.delete()
        uploads.discard(upload, actor=actor)


@transaction.atomic
def attach(upload: Upload, user: User, line: bytes = b"", *, needs_draw: bool = False) -> Artifact:
    """Attach a completed upload's file in the place that it was uploaded for; see `finish_upload`.

    `line` is the first one of a training record or annex; `needs_draw` says whether it is an index of messages of which
    rounds are drawn.
    """
    assert upload.team_id is not None  # noqa: S101  (what has a place in a draft is a team's)
    lock_team(upload.team_id)
    pending = Artifact.pending.filter(upload=upload).select_related("submission", "run", "upload")
    # At most one, and none by the time the lock is held if another request was faster.
    for one in pending:
        lock_submission(one.submission_id)
    attached = Artifact.objects.filter(upload=upload).first()
    if attached:
        return attached
    artifact = pending.all().first()
    if artifact is None:
        raise ProblemError.of(ErrorCode.UPLOAD_STATE)
    submission, run = artifact.submission, artifact.run
    if submission.state == SubmissionState.SUBMITTED and artifact.kind == ArtifactKind.PRIVACY_PROOF:
        reject_revision(submission, upload.sha256)
        stage(artifact, user)
        return artifact
    if submission.state != SubmissionState.DRAFT:
        raise wrong_state(submission, "a draft")
    replaced = [artifact.kind]
    if run and artifact.kind == ArtifactKind.TRAINING_RECORD:
        draw_challenge(run, line, upload.sha256, user)
        # It answers the challenge of another record.
        replaced.append(ArtifactKind.TRAINING_ANNEX)
    elif run and artifact.kind == ArtifactKind.TRAINING_ANNEX:
        reject_other_answer(run, line)
    elif run and artifact.kind == ArtifactKind.TRANSCRIPT:
        replaced += _index_arrived(run, upload.sha256 if needs_draw else None, user)
    _discard_files(Artifact.objects.filter(submission=submission, run=run, kind__in=replaced), user)
    move_artifact(artifact, ArtifactState.ATTACHED, actor=user, created_at=timezone.now())
    return artifact


def _index_arrived(run: Run, sha256: str | None, user: User) -> list[ArtifactKind]:
    """Draw rounds for the index of this SHA-256, or none; return the kinds of files that answered something else."""
    before = run.challenge
    if sha256:
        draw_for_index(run, sha256, user)
    elif before:
        _forget_challenge(run)
    return [] if run.challenge == before else [ArtifactKind.MESSAGES]


def _forget_challenge(run: Run) -> None:
    run.challenge, run.drawn_rounds = "", None
    run.save(update_fields=["challenge", "drawn_rounds"])


def _discard_other_messages(run: Run, user: User) -> None:
    """Discard messages that were attached before the index, unless they have the size of those that it lists."""
    attached = Artifact.objects.filter(run=run, kind=ArtifactKind.MESSAGES).select_related("upload")
    for artifact in attached:
        try:
            reject_other_messages(run, artifact.upload.size_bytes, artifact.upload.filename)
        except ProblemError:
            with transaction.atomic():
                _discard_files(attached, user)


@transaction.atomic
def submit(
    submission: Submission, actor: User, now: datetime | None = None, *, accepted_license: str = ""
) -> None:
    """Freeze the draft and queue its runs, or change nothing.

    `accepted_license` must be that of the track's submissions, if it states one; practice needs none.

    Raises `ProblemError` with everything that is missing or wrong at once.
    """
    now = now or timezone.now()
    # The team's row serializes submissions against its quota, and its checkpoints against duplicates of other teams.
    lock_team(submission.team_id)
    hold_track(submission.track_id)
    current = lock_submission(submission.pk, SubmissionState.DRAFT)
    lock_checkpoints(current.track_id, checkpoint_hashes(current))
    required_license = license_of(current)
    problems = problems_of(current, now)
    if accepted_license != required_license != "":
        problems.append(_license_problem(required_license, accepted_license))
    if problems:
        raise ProblemError(*problems)
    _discard_files(Artifact.pending.filter(submission=current), actor)
    phase = current.track.phase_at(now)
    # Without one the track would be closed.
    assert phase is not None  # noqa: S101
    move_submission(
        current,
        SubmissionState.SUBMITTED,
        actor=actor,
        submitted_at=now,
        license=required_license,
        phase=phase,
        published_at=published_on_submission(current, phase, now),
        alias=new_alias() if current.anonymous else "",
        revises_rejected=bool(current.required_proofs) and repeats_rejected(current),
    )
    runs = list(current.runs.all())
    for run in runs:
        move_run(
            run,
            RunState.QUEUED,
            actor=actor,
            # What a challenge draws was fixed when the site drew it.
            rules=current.track.rules(run.budget).model_dump(mode="json")
            | {"drawn_rounds": run.rounds_to_draw},
        )
    # Received by `evaluation.queue.dispatch.start_all`, which sends the runs to the workers on commit. It is a
    # signal because this app lies below the evaluation and must not import it.
    runs_queued.send(sender=Submission, runs=runs)
    submission.state, submission.submitted_at = current.state, current.submitted_at
    submission.phase, submission.published_at = current.phase, current.published_at


def license_of(submission: Submission) -> str:
    """Return the license that a team accepts when it submits this draft; empty if there is none."""
    return "" if submission.practice else submission.track.submission_license


def _license_problem(required: str, accepted: str) -> Problem:
    return Problem.of(
        ErrorCode.SUBMISSION_LICENSE,
        expected=required,
        found=accepted or "no license accepted",
        next_step="If your team agrees, submit the draft on its page, or use "
        f"`pfl submit --license {required}`; nothing is uploaded again. An earlier pfl lacks this option: upgrade it.",
    )


@transaction.atomic
def withdraw(submission: Submission, actor: User, reason: str = "") -> None:
    """Take a submission off the boards for good. A draft's files are deleted; a used quota slot isn't returned.

    The reason, where there is one, is in the audit entry, from which the public page of what was withdrawn has it.

    Raises `ProblemError`: `E_SUBMISSION_STATE` when it is withdrawn already; `E_TEAM_OWNER` when it is submitted and
    the actor doesn't own its team.
    """
    current = lock_submission(submission.pk, SubmissionState.DRAFT, SubmissionState.SUBMITTED)
    if current.state == SubmissionState.SUBMITTED and not owns(actor, current.team):
        raise ProblemError.of(ErrorCode.TEAM_OWNER)
    if current.state == SubmissionState.DRAFT:
        _discard_files(current.artifacts.all(), actor)
        _discard_files(Artifact.pending.filter(submission=current), actor)
    discard_staged(current, actor)
    details = {"reason": reason} if reason else {}
    if current.state == SubmissionState.SUBMITTED:
        notify_of_withdrawal(current, actor, reason)
    move_submission(current, SubmissionState.WITHDRAWN, actor=actor, details=details)
    submission.state = current.state


@transaction.atomic
def refund(
    submission: Submission,
    why: Refund = Refund.PLATFORM,
    now: datetime | None = None,
    *,
    actor: User | None = None,
    reason: str = "",
) -> None:
    """Give the submission's quota slot back, once; `actor` is the organizer who decides so, for this reason."""
    current = lock_submission(submission.pk)
    if current.refunded_at is None:
        current.refunded_at, current.refunded_for = now or timezone.now(), why
        current.save(update_fields=["refunded_at", "refunded_for"])
        record(actor, "submission.refunded", current, why=why, **({"reason": reason} if reason else {}))
    submission.refunded_at, submission.refunded_for = current.refunded_at, current.refunded_for


def refund_rejected(submission: Submission, now: datetime | None = None) -> None:
    """Give the slot of a submission back that ended without a score, unless the team had too many back lately."""
    now = now or timezone.now()
    states = set(submission.runs.values_list("state", flat=True))
    if states <= {RunState.REJECTED, RunState.FAILED} and returns_slot(
        returned_times(submission.team, submission.track, now), now
    ):
        refund(submission, Refund.REJECTED, now)


@transaction.atomic
def mark_baseline(submission: Submission, is_baseline: bool, actor: User) -> None:
    """Mark as the organizers' baseline, or take the mark away."""
    fields = {"is_baseline": is_baseline}
    change_listed(submission, actor, "submission.marked_baseline", fields, **fields)


@transaction.atomic
def disqualify(run: Run, reason: str, actor: User, *, lifted_because: str = "") -> None:
    """Take the run's rank for a public reason; an empty reason gives it back, for one that the team reads."""
    current = Run.objects.select_for_update(of=("self",)).select_related("submission").get(pk=run.pk)
    current.disqualified_because = run.disqualified_because = reason
    current.save(update_fields=["disqualified_because"])
    boards_changed(current.submission.track_id)
    record(
        actor, "run.disqualified" if reason else "run.requalified", current, reason=reason or lifted_because
    )
    notify_of_disqualification(current, lifted_because)


@transaction.atomic
def accept_log(run: Run, actor: User, reason: str = "", now: datetime | None = None) -> None:
    """Let a run rank whose declared log was flagged, now that an organizer has looked at it; once."""
    current = Run.objects.select_for_update(of=("self",)).select_related("submission").get(pk=run.pk)
    if current.log_accepted_at is None:
        current.log_accepted_at = now or timezone.now()
        current.save(update_fields=["log_accepted_at"])
        boards_changed(current.submission.track_id)
        record(actor, "run.log_accepted", current, check=current.results.log_flag, reason=reason)
    run.log_accepted_at = current.log_accepted_at


@transaction.atomic
def describe(
    submission: Submission, fields: Mapping[str, str | bool], actor: User, now: datetime | None = None
) -> None:
    """Change title, description and links; those of a submitted one are dated, and its title stays.

    The fields have been validated. Raises `ProblemError` (`E_SUBMISSION_STATE`) when it is withdrawn.
    """
    current = lock_submission(submission.pk, SubmissionState.DRAFT, SubmissionState.SUBMITTED)
    if current.state == SubmissionState.DRAFT:
        for name, value in fields.items():
            setattr(current, name, value)
        current.save(update_fields=list(fields))
        return
    kept = {name: value for name, value in fields.items() if name in EDITABLE}
    before = {name: getattr(current, name) for name in kept if getattr(current, name) != kept[name]}
    if not before:
        return
    after = {name: kept[name] for name in before}
    edited = {**kept, "edited_at": now or timezone.now()}
    change_listed(current, actor, "submission.edited", edited, before=before, after=after)


@transaction.atomic
def copy_to_draft(submission: Submission, user: User) -> Submission:
    """Open a draft with the text and all files of a submission that isn't a draft; nothing is uploaded again.

    What was evaluated for practice is copied to compete with it. A file that a rule of retention has removed is left
    out. Raises `ProblemError` (`E_SUBMISSION_STATE`) when it is a
    draft itself, or the team has too many of them.
    """
    if submission.state == SubmissionState.DRAFT:
        raise wrong_state(submission, "a submission that isn't a draft")
    text = {name: getattr(submission, name) for name in ("title", *EDITABLE, "keep_private", "anonymous")}
    practiced = submission.runs.filter(scored_at__isnull=False).exists()
    practice = submission.practice and not practiced
    draft = create_submission(submission.team, user, submission.track, **text, practice=practice)
    runs: dict[UUID | None, Run | None] = {None: None}
    for run in submission.runs.all():
        runs[run.pk], _ = Run.objects.update_or_create(
            submission=draft,
            budget=run.budget,
            defaults={"challenge": run.challenge, "drawn_rounds": run.drawn_rounds},
        )
    files = submission.artifacts.filter(state=ArtifactState.ATTACHED, upload__state=UploadState.COMPLETED)
    Artifact.objects.bulk_create(
        [
            Artifact(
                submission=draft,
                run=runs[file.run_id],
                kind=file.kind,
                upload_id=file.upload_id,
                state=ArtifactState.ATTACHED,
            )
            for file in files
        ]
    )
    record(user, "submission.copied", draft, source=str(submission.pk))
    return draft


def _discard_files(artifacts: Iterable[Artifact], actor: User) -> None:
    """Take files out of a draft, and remove those that no other submission has."""
    for artifact in artifacts:
        upload = artifact.upload
        artifact.delete()
        if not upload.artifacts.exists():
            uploads.discard(upload, actor=actor)
