"""The scores of runs by type of question, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.messages.results import QuestionTypeScore, RunResults

# The groups of questions that aren't types: those about providers that were in the training data, and other ones.
PROVIDERS = ("seen", "unseen")


@dataclass(frozen=True)
class TypeRow:
    """A type of question with the score of each run on it, after the run's name; None where the run has none."""

    name: str
    cells: Sequence[tuple[str, QuestionTypeScore | None]]

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")


def types_title(rows: Sequence[TypeRow]) -> str:
    """Return what a table of these rows shows; a test set without types still has seen and unseen providers."""
    has_types = any(row.name not in PROVIDERS for row in rows)
    return "ANLS by question type" if has_types else "ANLS on seen and unseen providers"


def type_rows(runs: Sequence[tuple[str, RunResults]]) -> list[TypeRow]:
    """Return a row for each type on which any of the named runs has a score, in the runs' own order of the types."""
    by_name = [(run, {one.name: one for one in results.question_types}) for run, results in runs]
    names = dict.fromkeys(one.name for _, results in runs for one in results.question_types)
    return [TypeRow(name, [(run, found.get(name)) for run, found in by_name]) for name in names]
