"""The scores of runs by type of question, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from docvqa_site.evaluation.test_sets.question_types import PROVIDERS
from evaluator.messages.results import QuestionTypeScore, RunResults


@dataclass(frozen=True)
class TypeRow:
    """A type of question with the score of each run on it, after the run's name; None where the run has none."""

    name: str
    cells: Sequence[tuple[str, QuestionTypeScore | None]]

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")


def has_types(rows: Sequence[TypeRow]) -> bool:
    """Whether any row is of a type, and not of all questions about seen or unseen providers."""
    return any(row.name not in PROVIDERS.values() for row in rows)


def types_title(rows: Sequence[TypeRow]) -> str:
    """Return what a table of these rows shows; a test set without types still has seen and unseen providers."""
    return "ANLS by question type" if has_types(rows) else "ANLS on seen and unseen providers"


def type_rows(runs: Sequence[tuple[str, RunResults]]) -> list[TypeRow]:
    """Return a row for each type on which any of the named runs has a score, in the runs' own order of the types."""
    by_name = [(run, {one.name: one for one in results.question_types}) for run, results in runs]
    names = dict.fromkeys(one.name for _, results in runs for one in results.question_types)
    return [TypeRow(name, [(run, found.get(name)) for run, found in by_name]) for name in names]
