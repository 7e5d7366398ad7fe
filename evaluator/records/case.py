"""What a training record is compared with, and the checks that do so, as they are found beside their functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from evaluator.checkpoints.weight_changes import TensorChange, changed_tensors
from evaluator.messages.checks import Difference, NamedCheck
from evaluator.messages.jobs import Check, PrivacyRules, TrackRules
from evaluator.records.annex import Annex, read_annex
from evaluator.records.lines import TrainingRecord

T = TypeVar("T")


class RunFile(StrEnum):
    """The files that a record is compared with; `BASE` are the track's base weights."""

    CHECKPOINT = "checkpoint"
    BASE = "base"
    LOG = "log"
    ANNEX = "annex"


@dataclass(frozen=True)
class Case:
    """A record, the rules of a track with a privacy budget, and the files beside the record.

    Attributes:
        challenge: What the site drew for the record; None in a dry run.
    """

    record: TrainingRecord
    rules: TrackRules
    files: Mapping[RunFile, Path]
    challenge: str | None = None

    @property
    def privacy(self) -> PrivacyRules:
        """The track's privacy rules. Raises ValueError where it has none."""
        if self.rules.privacy is None:
            raise ValueError("only a track with a privacy budget has records")
        return self.rules.privacy

    @cached_property
    def annex(self) -> Annex:
        """The annex. Raises ProblemError for one that can't be read."""
        path = self.files[RunFile.ANNEX]
        return read_annex(path, clients=self.rules.clients, max_rounds=self.rules.max_rounds)

    @cached_property
    def annex_differences(self) -> list[Difference]:
        """Where the annex isn't this record's."""
        record, annex = self.record, self.annex
        pairs = {
            "end line, annex_body_sha256": (annex.body_sha256, record.end.annex_body_sha256),
            "annex, run_token": (record.run.run_token, annex.run_token),
            "annex, rounds": (len(record.rounds), len(annex.sampled)),
        }
        return [
            Difference(expected, found, at) for at, (expected, found) in pairs.items() if expected != found
        ]

    @cached_property
    def changes(self) -> list[TensorChange]:
        """The tensors that training changed. Raises ProblemError for a checkpoint that can't be read."""
        return changed_tensors(self.files[RunFile.BASE], self.files[RunFile.CHECKPOINT])

    @cached_property
    def computed(self) -> dict[Callable[["Case"], Any], Any]:
        """What several checks share, by the function that computes it."""
        return {}

    def once(self, compute: Callable[["Case"], T]) -> T:
        """Return what a function makes of this case, computed once."""
        if compute not in self.computed:
            self.computed[compute] = compute(self)
        found: T = self.computed[compute]
        return found


@dataclass(frozen=True)
class RecordCheck:
    """A check of a training record, and the files that it needs.

    Attributes:
        is_of_own_annex: Whether there is nothing to check where the annex is another record's.
    """

    check: NamedCheck
    needs: tuple[RunFile, ...]
    function: Callable[[NamedCheck, Case], Check]
    is_of_own_annex: bool

    def make(self, case: Case) -> Check:
        """Return the outcome. Raises ProblemError for a file that can't be read."""
        if self.is_of_own_annex and case.annex_differences:
            return self.check.not_applicable("the annex is another run's")
        return self.function(self.check, case)


def record_check(
    check: NamedCheck, *needs: RunFile, of_any_annex: bool = False
) -> Callable[[Callable[[NamedCheck, Case], Check]], RecordCheck]:
    """Make a function of a module in `evaluator.records.check_table.MODULES` a check with this id and these texts."""
    is_of_own_annex = RunFile.ANNEX in needs and not of_any_annex
    return lambda function: RecordCheck(check, needs, function, is_of_own_annex)
