"""The examinations that ranks need to be final: which are missing, and requesting them.

A phase says how many of its first ranks, on each board, need which trust level. A run that takes such a rank without it
keeps the rank, which is pending until the examination has ended: if it passes, the rank is final, and if it fails, the
run loses the rank and the next one takes it, whose examination is missing then. So the clock looks again every minute.

The site requests an examination of a run once. Organizers decide about one that broke, or that they canceled, and about
a run that lacks the files for it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docvqa_site.boards.ordering import pending_levels, ranks_of
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.examining.files import require
from docvqa_site.evaluation.examining.levels import LEVELS
from docvqa_site.evaluation.examining.requests import request
from docvqa_site.evaluation.models import Examination
from docvqa_site.submissions.models import Run
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import TrustLevel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MissingExamination:
    """A run whose rank isn't final, with the level that it lacks.

    Attributes:
        requested: The newest examination of that level; None before one was requested.
        obstacle: Why none can be requested: the file that the run lacks; empty otherwise.
    """

    run: Run
    rank: int
    level: TrustLevel
    requested: Examination | None
    obstacle: str = ""

    @property
    def state(self) -> str:
        """How far the examination is, in words."""
        if self.obstacle:
            return f"can't be requested: the run has no {self.obstacle}"
        return self.requested.get_state_display() if self.requested else "not requested yet"

    @property
    def needs_organizer(self) -> bool:
        """Whether nothing happens until an organizer acts."""
        return bool(self.obstacle) or (self.requested is not None and not self.requested.is_active)


def missing_examinations(tracks: Iterable[Track], phase: str = "") -> list[MissingExamination]:
    """Return the examinations that ranks of these tracks lack, those of the first ranks of each board first.

    Where a phase is named, only those of runs that were submitted in it.
    """
    return [
        missing
        for track in tracks
        if any(one.examined_ranks for one in track.phases.all())
        for budget in track.run_budgets()
        for missing in _missing_on(track, budget, phase)
    ]


def request_missing() -> int:
    """Request every missing examination that nobody has requested yet, and return how many were."""
    missing = missing_examinations(Track.objects.prefetch_related("phases"))
    return sum(_is_requested(one) for one in missing if one.requested is None and not one.obstacle)


def require_final_ranks(tracks: Sequence[Track], phase: str = "") -> None:
    """Raise `ProblemError` (`E_EXAMINATION_PENDING`) if an examination is missing, with a problem for each."""
    if missing := missing_examinations(tracks, phase):
        raise ProblemError(*map(_problem, missing))


def _missing_on(track: Track, budget: float | None, phase: str) -> list[MissingExamination]:
    levels = pending_levels(track, budget, phase)
    ranks = ranks_of(track, budget, levels)
    runs = Run.objects.filter(pk__in=levels).select_related("submission__team", "submission__track")
    found = [
        _missing(run, ranks[run.pk], levels[run.pk])
        for run in runs.prefetch_related("examinations")
        # One may have lost its rank between the queries.
        if run.pk in ranks
    ]
    return sorted(found, key=lambda one: one.rank)


def _missing(run: Run, rank: int, level: TrustLevel) -> MissingExamination:
    # The newest first.
    requested = next((one for one in run.examinations.all() if one.level == level), None)
    return MissingExamination(run, rank, level, requested, "" if requested else _obstacle(run, level))


def _obstacle(run: Run, level: TrustLevel) -> str:
    """Return the file for this examination that the run lacks, in words; empty if it has all."""
    try:
        require(run, LEVELS[level].required)
    except ProblemError as error:
        return error.problem.expected.removeprefix("the ")
    return ""


def _is_requested(missing: MissingExamination) -> bool:
    try:
        request(missing.run, missing.level, by=None)
    except ProblemError as error:
        # It is being examined for another level, or evaluated again. The next look repeats it.
        logger.info("No %s of %s is requested: %s", missing.level.examination, missing.run, error)
        return False
    return True


def _problem(missing: MissingExamination) -> Problem:
    run = missing.run
    return Problem.of(
        ErrorCode.EXAMINATION_PENDING,
        where=f"{run.submission.track}, rank {missing.rank}: {run} of {run.submission.team}",
        expected=f"a passed {missing.level.examination}",
        found=missing.state,
    )
