"""The way of `pfl privacy explain`: every check on a record that the files at hand allow, in words."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.accounting.events import MAX_ROUNDS
from evaluator.accounting.rules import account
from evaluator.checkpoints import read_header, sha256_of
from evaluator.checks import CHECKS
from evaluator.contracts import (
    ArtifactKind,
    Check,
    CheckStatus,
    CommunicationResult,
    PrivacyRules,
    Step,
    TrackRules,
)
from evaluator.errors import ProblemError
from evaluator.pipeline import WEIGHTS, Bench, run_step
from evaluator.records import checks
from evaluator.records.annex import read_annex
from evaluator.records.lines import TrainingRecord
from evaluator.records.noise_checks import noise
from evaluator.records.sampling_checks import clients, providers
from evaluator.records.tensor_checks import tensors
from evaluator.weight_changes import changed_tensors, weight_vector_sha256


@dataclass(frozen=True)
class Case:
    """A record, the rules of a track that it is held against, and the files beside it by the names of their options."""

    record: TrainingRecord
    privacy: PrivacyRules
    clients: int
    files: Mapping[str, Path]

    @property
    def rules(self) -> TrackRules:
        return TrackRules(
            reference="local",
            test_set="local",
            clients=self.clients,
            max_rounds=MAX_ROUNDS,
            privacy=self.privacy,
        )


@dataclass(frozen=True)
class Group:
    """Checks that are made together, and the files that they need."""

    ids: tuple[str, ...]
    needs: tuple[str, ...]
    make: Callable[[Case], list[Check]]


@dataclass(frozen=True)
class Explained:
    """A check by its id: as it was made, or why it wasn't."""

    id: str
    check: Check | None
    reason: str = ""

    def __str__(self) -> str:
        text = CHECKS[self.id]
        rows = {
            "means": text.meaning,
            "expected": self.check.expected if self.check else "",
            "found": self.check.found if self.check else "",
            "where": self.check.where if self.check else "",
            "why not": self.reason,
            "can't detect": text.limit,
        }
        status = self.check.status.replace("_", " ") if self.check else "not made"
        return "\n".join(
            [f"{self.id} {text.name}: {status}", *(f"  {name}: {row}" for name, row in rows.items() if row)]
        )


def explain(case: Case) -> Iterator[Explained]:
    """Every check of the table, in its order."""
    found: dict[str, Explained] = {}
    for group in GROUPS:
        found |= {explained.id: explained for explained in _explain(group, case)}
    for name in CHECKS:
        yield found.get(name, Explained(name, None, "the site makes it, of all of a team's runs"))


def _explain(group: Group, case: Case) -> Iterator[Explained]:
    made: dict[str, Check] = {}
    missing = [f"--{name}" for name in group.needs if name not in case.files]
    reason = f"it takes {' and '.join(missing)}" if missing else "the files are of different runs"
    if not missing:
        try:
            made = {check.id: check for check in group.make(case)}
        except ProblemError as error:
            reason = "\n".join(map(str, error.problems))
    for name in group.ids:
        yield Explained(name, made[name]) if name in made else Explained(name, None, reason)


def _budget(case: Case) -> list[Check]:
    return account(case.record, case.privacy, []).checks


def _record_alone(case: Case) -> list[Check]:
    record = case.record
    return [
        checks.rounds(record),
        clients(record),
        checks.track_rules(record.run, case.privacy, case.clients),
        checks.other_uses(record.run),
    ]


def _models(case: Case) -> list[Check]:
    run = case.record.run
    base, checkpoint = case.files["base"] / WEIGHTS, case.files["checkpoint"]
    shapes = {name: tensor.shape for name, tensor in read_header(base).tensors.items()}
    return [
        checks.models(
            case.record,
            first=weight_vector_sha256(base, run.trainable),
            last=weight_vector_sha256(checkpoint, run.trainable),
        ),
        tensors(
            run.trainable,
            shapes,
            changed_tensors(base, checkpoint),
            trained=any(line.clients for line in case.record.rounds),
        ),
    ]


def _annex(case: Case) -> list[Check]:
    path = case.files["annex"]
    annex = read_annex(path, clients=case.clients, max_rounds=MAX_ROUNDS)
    own = checks.annex_file(case.record, annex, sha256_of(path))
    if own.status is not CheckStatus.PASSED:
        return [own]
    return [own, providers(case.record, annex), *noise(case.record, annex)]


def _plausibility(case: Case) -> list[Check]:
    files = {
        ArtifactKind.CHECKPOINT: case.files["checkpoint"],
        ArtifactKind.COMMUNICATION_LOG: case.files["log"],
    }
    bench = Bench(files, case.rules, reference=case.files["base"])
    result = run_step(Step.COMMUNICATION, bench, lambda _done, _total: None).result
    return result.checks if isinstance(result, CommunicationResult) else []


GROUPS = [
    Group(("C1",), (), _budget),
    Group(("C2", "C5", "C19", "C20"), (), _record_alone),
    Group(("C3", "C10"), ("base", "checkpoint"), _models),
    Group(
        ("C4",),
        ("log",),
        lambda case: [checks.message_bytes(case.record, checks.read_traffic(case.files["log"], case.rules))],
    ),
    Group(("C6", "C8", "C9", "C17"), ("annex",), _annex),
    Group(
        ("C16",),
        ("checkpoint",),
        lambda case: [checks.checkpoint_file(case.record, sha256_of(case.files["checkpoint"]))],
    ),
    Group(
        ("C18",),
        ("base",),
        lambda case: [checks.base_weights(case.record.run, sha256_of(case.files["base"] / WEIGHTS))],
    ),
    Group(("P1", "P2", "P3", "P4"), ("base", "checkpoint", "log"), _plausibility),
]
