"""Runs an examination on this machine: fetches the run's files, starts the level's judge, and stores how it ended."""

import logging
import secrets
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from docvqa_site.evaluation.examining import requests
from docvqa_site.evaluation.examining.files import RunFiles, fetched
from docvqa_site.evaluation.examining.levels import LEVELS, Effort, Folder
from docvqa_site.evaluation.examining.sandbox import CannotExamineError, judge
from docvqa_site.evaluation.models import Examination, TestSet
from docvqa_site.submissions.models import Run
from evaluator.errors import ProblemError
from evaluator.messages.examinations import ExaminationJob, Report, Scores
from evaluator.messages.jobs import TrackRules
from evaluator.messages.rankings import COUNTED
from evaluator.scoring.metrics import cut
from evaluator.scoring.split import read_split

logger = logging.getLogger(__name__)

NO_FOLDERS: Mapping[Folder, Path] = {}


def run_next() -> None:
    """Run the oldest examination that waits, with the settings of this machine."""
    if examination := requests.take():
        effort = Effort(hours=settings.EXAMINATION_HOURS, repeats=settings.EXAMINATION_REPEATS)
        run(examination, effort)


def run(examination: Examination, effort: Effort, given: Mapping[Folder, Path] = NO_FOLDERS) -> None:
    """Run an examination that was taken here, and store how it ended.

    Args:
        given: Folders in place of those that the settings of this machine name.
    """
    try:
        requests.conclude(examination, _examine(examination, effort, given))
    except requests.EndedError as error:
        logger.warning("%s What was found is dropped.", error)
        examination.refresh_from_db()
    except (ProblemError, CannotExamineError) as error:
        requests.break_off(examination, str(error))
    except Exception as error:
        # The organizers read it on the run's page, and the log has its trace.
        requests.break_off(examination, f"{type(error).__name__}: {error}")
        raise


def _examine(examination: Examination, effort: Effort, given: Mapping[Folder, Path]) -> Report:
    """Return what the judge reports.

    Raises:
        ProblemError: The run isn't scored, or lacks a file.
        CannotExamineError: Nothing can be examined on this machine.
        EndedError: The examination was ended meanwhile.
    """
    found, level = examination.run, LEVELS[examination.trust_level]
    requests.reject_unscored(found)
    folders = {folder: _folder(folder, found, given) for folder in level.folders}
    heart = requests.Heart(examination)
    with fetched(found, required=level.required, optional=level.optional, on_piece=heart) as files:
        job = _job(examination, files, folders, effort)
        report = judge(job, longest_s=level.longest_s(job), on_progress=heart)
    if not isinstance(report.findings, level.findings):
        raise CannotExamineError(f"The judge reported a {report.findings.kind}.")
    return report


def _job(
    examination: Examination, files: RunFiles, folders: Mapping[Folder, Path], effort: Effort
) -> ExaminationJob:
    found, level = examination.run, LEVELS[examination.trust_level]
    track = found.submission.track
    return ExaminationJob(
        judge=level.judge,
        level=level.trust,
        files=files.paths,
        sha256=files.sha256,
        **{folder.value: path for folder, path in folders.items()},
        track=track.slug,
        rules=TrackRules.model_validate(found.rules),
        challenge=found.challenge,
        submitted=_submitted(found),
        is_ranked_by_bytes=track.kind.rule.terms[0][0] == "bytes_total",
        is_counted=found.counting == COUNTED,
        seed=secrets.randbits(32),
        timeout_s=effort.timeout_s,
        hours=effort.hours,
        repeats=effort.repeats,
    )


def _submitted(run: Run) -> Scores:
    """Return the run's scores as its team may see them, on the public part of a test set that is split."""
    results = run.results
    anls, accuracy = results.anls, results.accuracy
    if results.public_anls is not None:
        anls, accuracy = results.public_anls, results.public_accuracy
    assert anls is not None  # noqa: S101  (a database constraint on scored runs)
    assert results.bytes_total is not None  # noqa: S101  (the same)
    return Scores(
        anls=float(cut(anls)),
        accuracy=float(cut(accuracy or 0.0)),
        bytes_total=results.bytes_total,
        epsilon=results.epsilon,
    )


def _folder(folder: Folder, run: Run, given: Mapping[Folder, Path]) -> Path:
    """Return a folder of this machine. Raises `CannotExamineError` if it is missing, or isn't that of the run."""
    rules = TrackRules.model_validate(run.rules)
    path = given.get(folder) or _configured(folder, rules)
    if not path.is_dir():
        raise CannotExamineError(f"The {folder.label} folder is missing: {path}.")
    if folder is Folder.TEST_SET:
        _require_same_split(rules.test_set, path)
    return path.resolve()


def _configured(folder: Folder, rules: TrackRules) -> Path:
    match folder:
        case Folder.BASE:
            return settings.EVALUATOR_HOME / "references" / rules.reference
        case Folder.TEST_SET:
            return settings.EVALUATOR_HOME / "test_sets" / rules.test_set
        case Folder.DATA if settings.EXAMINATION_DATA:
            return Path(settings.EXAMINATION_DATA)
    raise CannotExamineError(
        "This machine has no training data: set PFL_EXAMINATION_DATA to a data folder with the training split."
    )


def _require_same_split(name: str, folder: Path) -> None:
    """Raise `CannotExamineError` for a test set that is split otherwise: the team will read scores on its parts."""
    test_set, split = TestSet.objects.filter(name=name).first(), read_split(folder)
    found = split.sha256 if split else ""
    if test_set and test_set.split_sha256 != found:
        raise CannotExamineError(
            f"The test set {name} is split by {test_set.split_sha256 or 'nothing'}, and the one in {folder} by "
            f"{found or 'nothing'}: give it the workers' split.json."
        )
