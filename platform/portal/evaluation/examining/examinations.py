"""Examinations of scored runs, from which trust levels follow: what a command of the organizers does with a run.

A command has three steps, each a function that others of its kind share:

    with fetched(run, required=[SETTINGS], optional=[METHOD_FILE]) as files, KitSandbox() as kit:
        identity = kit.identify(files)                         # which code is examined
        report = ...  kit.run("starter_kit.….module", "function", inputs, readable=[files.folder, data], limits=...)
        conclude(run, TrustLevel.…, "command", report, identity, by=user)

- `run_files.fetched` copies a run's files from the store, verified, into a folder of their own.
- `kit_sandbox.KitSandbox` runs functions of the starter kit in the workers' sandbox: no network, no
  environment, no files but those that are named, limits of memory, time, file sizes and processes. What a function
  returns is data from an untrusted process once it has loaded a method file: validate it, and compute verdicts here or
  in a process that has not loaded one.
- `conclude` stores the row, derives the run's level from all of its rows and writes the audit entry.

A new level is a member of `evaluator.messages.jobs.TrustLevel`, its meaning in
`portal.evaluation.display.results.TRUST`, a report in `evaluator.messages.examinations`, and a management command
in this app. Nothing else sets a level.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from evaluator.errors import ErrorCode, ProblemError, shorten
from evaluator.messages.examinations import AnyReport, CodeIdentity
from evaluator.messages.jobs import TrustLevel
from portal.accounts.models import User
from portal.audit.models import record
from portal.audit.versions import boards_changed
from portal.evaluation import clock
from portal.evaluation.examining.trust import earned, examiner, with_trust
from portal.evaluation.models import Examination
from portal.submissions.models import Run, RunState, SubmissionState

MAX_TEXT_CHARACTERS = 500


@dataclass(frozen=True)
class ShownExamination:
    """An examination as pages and the API show it."""

    level: TrustLevel
    command: str
    passed: bool
    by: str
    at: datetime
    report: AnyReport
    identity: CodeIdentity


def reject_unscored(run: Run) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_STATE`) unless the run is scored, of a submission that is not withdrawn."""
    if run.state != RunState.SCORED or run.submission.state != SubmissionState.SUBMITTED:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_STATE,
            message="Only evaluated runs of submissions that haven't been withdrawn can be examined.",
            where=str(run),
            expected=RunState.SCORED,
            found=f"{run.state}, {run.submission.state}",
        )


@transaction.atomic
def conclude(
    run: Run,
    level: TrustLevel,
    command: str,
    report: AnyReport,
    identity: CodeIdentity,
    *,
    by: User | None,
) -> Examination:
    """Store what an examination found, and give the run the trust level that follows from all of its examinations.

    Raises `ProblemError` (`E_SUBMISSION_STATE`) if the run isn't scored, or not any more.
    """
    current = Run.objects.select_for_update(of=("self",)).select_related("submission").get(pk=run.pk)
    reject_unscored(current)
    examination = Examination.objects.create(
        run=current,
        level=level,
        command=command,
        passed=report.passed,
        report=_storable(report.model_dump(mode="json")),
        identity=identity.model_dump(mode="json"),
        by=by,
        at=clock.now(),
    )
    assert current.scored_at is not None  # noqa: S101  (as it is scored)
    current.results = with_trust(current.results, earned(current.scored_at, current.examinations.all()))
    current.save(update_fields=["results"])
    boards_changed(current.submission.track_id)
    record(
        by, "run.examined", current, command=command, level=level, passed=report.passed, row=examination.pk
    )
    run.results = current.results
    return examination


def shown(run: Run) -> list[ShownExamination]:
    """Return the run's examinations, newest first. Of those that did not pass, only insiders may know."""
    rows = sorted(run.examinations.all(), key=lambda one: (one.at, one.pk), reverse=True)
    return [
        ShownExamination(
            TrustLevel(row.level),
            row.command,
            row.passed,
            examiner(row),
            row.at,
            row.read_report(),
            row.read_identity(),
        )
        for row in rows
    ]


def _storable(value: Any) -> Any:
    """Return JSON whose texts the database stores: a method chooses what its problems quote."""
    match value:
        case str():
            return shorten(value, MAX_TEXT_CHARACTERS)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {name: _storable(item) for name, item in value.items()}
        case _:
            return value
