"""Forge records of a model that was trained without privacy, judge them as the site does, and score their models.

`python -m tests.studies forging` trains that model on the task of the reproduction and writes docs/forging.md.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from evaluator.checkpoints.weight_changes import changed_tensors
from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.docvqa.dataset import read_info
from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.messages.jobs import ArtifactKind, CheckStatus, PrivacyRules, TrackRules
from evaluator.messages.results import unbound_by
from evaluator.records.case import Case, RunFile
from evaluator.records.certificate import MAX_ROUNDS, Floats
from evaluator.records.check_table import check_record
from evaluator.records.lines import TrainableTensor
from evaluator.records.reading import read_record
from evaluator.records.server_steps import SumStep
from starter_kit.federation.rounds import Client
from starter_kit.runs.folder import RunFolder
from starter_kit.settings.configuration import load_settings
from starter_kit.weights import tiny_vt5
from tests.evaluator.records.factories import DATA_SHA256, MadeRun, by_the_rule, make_record
from tests.studies.forging.forgeries import (
    ALL,
    FORGERIES,
    NORMS,
    NORMS_AMONG_ALL,
    NORMS_BESIDE_POSITIONS,
    ROUNDS,
    Forgery,
    Wanted,
)
from tests.studies.reproduction.experiment import Experiment, score_of
from tests.studies.reproduction.rows import ROWS, Row

# At this ε noise hides no signal, so that its whole share of the longest one is seen.
LITTLE_NOISE = 3000
CONFIG = Path(__file__).parents[1] / "reproduction" / "configs" / "fl-provider-dp.yaml"

# Models trained without privacy, by what they train.
FEDAVG = next(row for row in ROWS if row.name == "fedavg")
ONLY_NORMS = replace(
    FEDAVG,
    name="fedavg-norms",
    changes=(*FEDAVG.changes, "trainable=['*layer_norm.weight']", "rounds=12", "local.learning_rate=0.05"),
)
# Genuine private runs, with the steps of the server that are tuned for ε = 8.
GENUINE = [
    replace(
        row,
        name=f"{row.name}-little-noise",
        title=row.title.removesuffix(", ε = 8"),
        changes=(*row.changes, f"target_epsilon={LITTLE_NOISE}"),
    )
    for row in ROWS
    if row.name
    in {
        "fl-provider-dp-8",
        "fl-provider-dp-privacy-paper-8",
        "fl-provider-dp-competition-8",
        "centralized-dp-8",
        "dp-lora-8",
    }
]
# The model of each, and the ends of the names of the tensors that are declared.
TRAINED: dict[str, tuple[Row, tuple[str, ...]]] = {
    ALL: (FEDAVG, ("",)),
    NORMS: (ONLY_NORMS, ("layer_norm.weight",)),
    NORMS_AMONG_ALL: (ONLY_NORMS, ("",)),
    NORMS_BESIDE_POSITIONS: (ONLY_NORMS, ("layer_norm.weight", "position_embeddings.weight")),
}

Verdict = Literal["rejected", "no rank", "flagged", "passed"]


class Forged(BaseModel):
    """What became of a forgery.

    Attributes:
        anls: Of its model, on the test split.
        verdicts: How many challenges led to each verdict.
        is_replayable: Whether the site can replay a round of it, all of which find the last round false.
        found_by: The checks that rejected or flagged it under any challenge, or had no power.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    anls: float
    verdicts: dict[Verdict, int]
    found_by: list[str]
    is_replayable: bool


class Forging(BaseModel):
    """All outcomes, with the scores of the models that they start from and want.

    Attributes:
        genuine: What `record.alignment` finds in genuine runs with little noise, by the row of the reproduction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: float
    wanted: float
    genuine: dict[str, str] = {}
    forged: list[Forged]


class Forger:
    """Forges runs on one data set.

    Args:
        experiment: Has the data and the run without privacy, of its first seed.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._base = tiny_vt5.FOLDER / WEIGHTS

    @cached_property
    def _data(self) -> Path:
        return self._experiment.data(1)

    @cached_property
    def _clients(self) -> list[Client]:
        clients = read_info(self._data).clients
        return [Client(client, {name: [0] for name in names}) for client, names in clients.items()]

    @cached_property
    def _trained(self) -> dict[str, Path]:
        return {
            tensors: RunFolder(self._experiment.run_folder(row, 1)).file(ArtifactKind.CHECKPOINT)
            for tensors, (row, _) in TRAINED.items()
        }

    def run(self, earlier: Forging | None) -> Iterator[Forging]:
        """Yield all outcomes as they come; those of forgeries that are known are kept."""
        known = {one.name: one for one in earlier.forged} if earlier else {}
        base = earlier.base if earlier else score_of(self._base, self._data).anls
        wanted = earlier.wanted if earlier else score_of(self._trained[ALL], self._data).anls
        genuine = dict(earlier.genuine) if earlier else {}
        for row in GENUINE:
            if row.title not in genuine:
                genuine[row.title] = self._alignment(row)
                yield Forging(base=base, wanted=wanted, genuine=genuine, forged=list(known.values()))
        forged: list[Forged] = []
        for forgery in FORGERIES:
            forged.append(known.get(forgery.name) or self._forged(forgery))
            yield Forging(base=base, wanted=wanted, genuine=genuine, forged=forged)

    def _alignment(self, row: Row) -> str:
        """Return what the check finds in a genuine run of a row."""
        run = RunFolder(self._experiment.run_folder(row, 1))
        files = {
            RunFile.CHECKPOINT: run.file(ArtifactKind.CHECKPOINT),
            RunFile.BASE: self._base,
            RunFile.LOG: run.file(ArtifactKind.COMMUNICATION_LOG),
            RunFile.ANNEX: run.file(ArtifactKind.TRAINING_ANNEX),
        }
        record = read_record(run.file(ArtifactKind.TRAINING_RECORD), max_rounds=MAX_ROUNDS)
        checks = check_record(Case(record, self._rules(LITTLE_NOISE), files))
        return next(check.found for check in checks if check.id == "record.alignment")

    def _forged(self, forgery: Forgery) -> Forged:
        verdicts: dict[Verdict, int] = {}
        found: set[str] = set()
        with TemporaryDirectory() as folder:
            for number in range(forgery.challenges):
                challenge = hashlib.sha256(f"{forgery.name} {number}".encode()).hexdigest()
                made = self._made(forgery, Path(folder), challenge)
                verdict, checks = self._judged(made, challenge, forgery.epsilon)
                verdicts[verdict] = verdicts.get(verdict, 0) + 1
                found |= checks
            anls = score_of(made.checkpoint, self._data).anls
        return Forged(
            name=forgery.name,
            anls=anls,
            verdicts=verdicts,
            found_by=sorted(found),
            is_replayable=not forgery.run.get("server"),
        )

    def _made(self, forgery: Forgery, folder: Path, challenge: str) -> MadeRun:
        declared, trained = self._declared(forgery), self._trained[forgery.tensors]
        shapes = {tensor.name: tensor.shape for tensor in declared["trainable"]}
        start, end = (self._vector(file, shapes) for file in (self._base, trained))
        wanted = Wanted(start, end - start, list(shapes.values()), seed=2026)
        return make_record(
            folder,
            base=self._base,
            checkpoint=trained if forgery.wanted_checkpoint else None,
            providers=len(self._clients[0].providers),
            all_sums=partial(forgery.sums, wanted),
            follow=by_the_rule,
            challenge=challenge,
            **declared,
        )

    def _declared(self, forgery: Forgery) -> dict[str, Any]:
        """Return the terms of the kit's own config, with the forgery's changes."""
        rounds = forgery.run.get("rounds", ROUNDS)
        settings = load_settings(str(CONFIG), [f"target_epsilon={forgery.epsilon}", f"rounds={rounds}"])
        terms = settings.plan(self._clients).record_terms
        assert terms is not None
        assert isinstance(terms.server, SumStep)
        _, ends = TRAINED[forgery.tensors]
        changed = {
            change.name: list(change.shape)
            for change in changed_tensors(self._base, self._trained[ALL])
            if change.name.endswith(ends)
        }
        return {
            "clients": len(self._clients),
            "sampling": terms.mechanism.sampling,
            "noise": terms.mechanism.noise,
            "clip_norm": terms.clip_norm,
            "normalizer": forgery.normalizer * terms.normalizer,
            "server": SumStep(learning_rate=forgery.rate * terms.server.learning_rate),
            "rounds": rounds,
            "trainable": [TrainableTensor(name=name, shape=changed[name]) for name in sorted(changed)],
            "claimed_epsilon": forgery.epsilon,
        } | dict(forgery.run)

    def _vector(self, checkpoint: Path, shapes: Mapping[str, Sequence[int]]) -> Floats:
        vector = weight_vector(checkpoint, shapes)
        assert vector is not None
        return vector.read(0, vector.numel)

    def _rules(self, epsilon: float, data_sha256: str = "") -> TrackRules:
        return TrackRules(
            reference="tiny",
            test_set="secret",
            clients=len(self._clients),
            providers_per_client=[len(client.providers) for client in self._clients],
            data_sha256=data_sha256,
            privacy=PrivacyRules(epsilon=epsilon, delta=1e-5),
        )

    def _judged(self, made: MadeRun, challenge: str, epsilon: float) -> tuple[Verdict, set[str]]:
        """Return what the site does with a run, and the checks that are why."""
        files = {
            RunFile.CHECKPOINT: made.checkpoint,
            RunFile.BASE: made.base,
            RunFile.LOG: made.log,
            RunFile.ANNEX: made.annex,
        }
        record = read_record(made.record, max_rounds=MAX_ROUNDS)
        checks = check_record(Case(record, self._rules(epsilon, DATA_SHA256), files, challenge))
        found = {check.id: check.status for check in checks}
        failed = {name for name, status in found.items() if status is CheckStatus.FAILED}
        flagged = {name for name, status in found.items() if status is CheckStatus.FLAGGED}
        unbound = {unbound_by(checks).partition(":")[0]} - {""}
        verdict: Verdict = (
            "rejected" if failed else "no rank" if unbound else "flagged" if flagged else "passed"
        )
        return verdict, failed | flagged | unbound
