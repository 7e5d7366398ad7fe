"""The scores of runs by type of question, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.messages.results import QuestionTypeScore, RunResults


@dataclass(frozen=True)
class TypeRow:
    """A type of question with the score of each run on it; None where the run has none."""

    name: str
    cells: Sequence[QuestionTypeScore | None]

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")


def type_rows(runs: Sequence[RunResults]) -> list[TypeRow]:
    """Return a row for each type on which any of the runs has a score, in the runs' own order of the types."""
    by_name = [{one.name: one for one in run.question_types} for run in runs]
    names = dict.fromkeys(one.name for run in runs for one in run.question_types)
    return [TypeRow(name, [found.get(name) for found in by_name]) for name in names]
