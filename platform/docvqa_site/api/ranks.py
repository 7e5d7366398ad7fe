"""The ranks of a team's own runs, as the API states them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from docvqa_site.boards.ordering import would_rank_in_words
from docvqa_site.boards.standings import Standing, standings_of
from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.reviews.selectors import verdict_of_counts, verdict_on
from docvqa_site.submissions.models import Run, SubmissionState
from evaluator.messages.states import ResultStatus


@dataclass(frozen=True)
class Ranks:
    """The ranks of some runs, and how many runs have one on each of their boards."""

    standings: Mapping[UUID, Standing]

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> Self:
        """Return the ranks of these runs."""
        return cls(standings_of(runs))

    def of(self, run: Run) -> int | None:
        """Return the run's rank; None where it has none."""
        return self.standings[run.pk].rank if run.pk in self.standings else None

    def ranked(self, run: Run) -> int:
        """Return how many runs have a rank on its board; 0 where it has none itself."""
        return self.standings[run.pk].count if run.pk in self.standings else 0

    def possible_ranks(self, run: Run) -> str:
        """Return which ranks the run could have by the uncertainty of scores; empty where that is one."""
        standing = self.standings.get(run.pk)
        return str(standing.possible) if standing and standing.possible_ranks else ""

    @staticmethod
    def status(run: Run) -> ResultStatus | None:
        """Return how far the result can be relied on; None before it is scored."""
        submission = run.submission
        if run.scored_at is None:
            return None
        return ResultStatus.SCORED if submission.practice else verdict_of_counts(submission).status

    def unranked_because(self, run: Run) -> str:
        """Return why a scored run has no rank; empty for any other."""
        submission = run.submission
        if run.scored_at is None or run.pk in self.standings:
            return ""
        if submission.state != SubmissionState.SUBMITTED:
            return f"the submission is {submission.state}"
        if submission.practice:
            return "practice"
        if submission.is_unpublished:
            return "the submission is unpublished"
        return _shortfall(run)

    def explained(self, run: Run) -> str:
        """Return the same, and for a run that isn't public also which rank it would have, or why none."""
        because = self.unranked_because(run)
        if not because or not run.submission.is_unpublished:
            return because
        would = _shortfall(run) or would_rank_in_words(run)
        return f"{because}; {would}" if would else because


def _shortfall(run: Run) -> str:
    """Return what keeps a scored run from a rank; empty if nothing does."""
    return str(shortfall(run, rejected=verdict_on(run.submission).rejection) or "")
