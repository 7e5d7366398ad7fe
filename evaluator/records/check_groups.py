"""All checks of a training record, in groups that need the same files.

Workers compare a record with all of its files by `check_record`; `pfl privacy explain` runs the groups whose files are
available. The results of checks are public and the annex is not, so no result reveals a number of providers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from evaluator.checkpoints.contents import sha256_of
from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.weight_changes import TensorChange, changed_tensors
from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.mechanisms.noise import Placement
from evaluator.messages.jobs import Check, CheckStatus, PrivacyRules, TrackRules
from evaluator.records import checks
from evaluator.records.annex import Annex, read_annex
from evaluator.records.certificate import root_of_pieces
from evaluator.records.check_texts import CHECKS
from evaluator.records.difference import not_applicable
from evaluator.records.lines import TrainingRecord
from evaluator.records.linkage_checks import Ends, linkage
from evaluator.records.noise_checks import noise
from evaluator.records.sampling_checks import clients, providers
from evaluator.records.tensor_checks import tensors

# What is compared with the annex once it is known to be the record's.
ANNEX_CHECKS = ("C6", "C8", "C9", "C22", "C23", "C24")


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
    def annex_file(self) -> Check:
        """The outcome of check C17: whether the annex is this record's."""
        return checks.annex_file(self.record, self.annex)

    @cached_property
    def changes(self) -> list[TensorChange]:
        """The tensors that training changed. Raises ProblemError for a checkpoint that can't be read."""
        return changed_tensors(self.files[RunFile.BASE], self.files[RunFile.CHECKPOINT])


@dataclass(frozen=True)
class CheckGroup:
    """Checks that are made together, and the files that they need; `make` raises ProblemError for a bad file."""

    ids: tuple[str, ...]
    needs: tuple[RunFile, ...]
    make: Callable[[Case], list[Check]]


def check_record(case: Case) -> list[Check]:
    """Run every check of `GROUPS`, and return their outcomes in the order of the table.

    Raises:
        ProblemError: One of the files can't be read.
        ValueError: The track has no privacy rules.
    """
    made = {check.id: check for group in GROUPS for check in group.make(case)}
    return [made[name] for name in CHECKS if name in made]


def _alone(case: Case) -> list[Check]:
    record = case.record
    return [
        checks.rounds(record),
        clients(record),
        checks.track_rules(record.run, case.privacy, case.rules.clients),
        checks.other_uses(record.run),
    ]


def _models(case: Case) -> list[Check]:
    record, run = case.record, case.record.run
    base, checkpoint = case.files[RunFile.BASE], case.files[RunFile.CHECKPOINT]
    shapes = {name: tensor.shape for name, tensor in read_header(base).tensors.items()}
    return [
        checks.models(
            record,
            first=_root(base, run.shapes),
            last=_root(checkpoint, run.shapes),
        ),
        tensors(
            run.trainable,
            shapes,
            case.changes,
            released=any(run.noise.placement is Placement.SERVER or line.clients for line in record.rounds),
        ),
    ]


def _messages(case: Case) -> list[Check]:
    return [checks.message_bytes(case.record, checks.read_traffic(case.files[RunFile.LOG], case.rules))]


def _annex(case: Case) -> list[Check]:
    own = case.annex_file
    if own.status is CheckStatus.PASSED:
        return [
            own,
            checks.challenge(case.record, case.annex, case.challenge),
            checks.training_data(case.annex, case.rules.data_sha256),
            providers(case.record, case.annex, case.rules.providers_per_client),
            *noise(case.record, case.annex, case.rules.providers_per_client),
        ]
    return [
        own,
        *(not_applicable(name, "the annex is another run's") for name in ANNEX_CHECKS),
    ]


def _linkage(case: Case) -> list[Check]:
    if case.annex_file.status is not CheckStatus.PASSED:
        return [not_applicable("C21", "the annex is another run's")]
    ends = Ends(case.files[RunFile.BASE], case.files[RunFile.CHECKPOINT], case.changes)
    return [linkage(case.record, case.annex, ends)]


def _checkpoint(case: Case) -> list[Check]:
    return [checks.checkpoint_file(case.record, sha256_of(case.files[RunFile.CHECKPOINT]))]


def _base(case: Case) -> list[Check]:
    return [checks.base_weights(case.record.run, sha256_of(case.files[RunFile.BASE]))]


def _root(checkpoint: Path, shapes: Mapping[str, Sequence[int]]) -> str | None:
    vector = weight_vector(checkpoint, shapes)
    return None if vector is None else root_of_pieces(vector.pieces())


GROUPS = [
    CheckGroup(("C2", "C5", "C19", "C20"), (), _alone),
    CheckGroup(("C3", "C10"), (RunFile.BASE, RunFile.CHECKPOINT), _models),
    CheckGroup(("C4",), (RunFile.LOG,), _messages),
    CheckGroup(("C17", *ANNEX_CHECKS), (RunFile.ANNEX,), _annex),
    CheckGroup(("C21",), (RunFile.BASE, RunFile.CHECKPOINT, RunFile.ANNEX), _linkage),
    CheckGroup(("C16",), (RunFile.CHECKPOINT,), _checkpoint),
    CheckGroup(("C18",), (RunFile.BASE,), _base),
]
