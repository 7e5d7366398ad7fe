"""Attacks on the reproduction's runs; what is trained or measured already is kept, so that an experiment resumes.

Every row is attacked on two sets of questions (`starter_kit.data.forms.generation.write_red_splits`): new forms of
training providers beside forms of others, and the training forms themselves. The same row's runs with other seeds are
the references by which our own attack is calibrated: trained alike, on other providers.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from evaluator.accounting.bounds import MembershipBounds
from evaluator.accounting.membership import membership_bounds, privacy_profiles
from evaluator.docvqa.dataset import Dataset, read_info, write_info
from evaluator.leakage import models
from evaluator.leakage.assessment import Options
from evaluator.leakage.models import assess_checkpoint, reference_features
from evaluator.leakage.results import AttackResult
from evaluator.leakage.statistics import Statistic
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.values import MAX_ROUNDS
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind, evaluator_version
from evaluator.records.epsilon import releases
from starter_kit.console import log
from starter_kit.data.forms import FormSettings
from starter_kit.data.forms.generation import write_red_splits
from starter_kit.reporting.files import replace_file
from starter_kit.runs.folder import FILES, RunFolder
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.experiment import Experiment, TrainedRow, machine, task_key
from tests.studies.reproduction.leakage.coverage import Coverage, simulate_coverage
from tests.studies.reproduction.rows import ROWS, Row

NAMES = (
    "zero-shot",
    "fedavg",
    "lora-nf4",
    *(f"{method}-{epsilon}" for method in ("fl-provider-dp", "dp-lora") for epsilon in (8, 4, 1)),
)
ATTACKED_ROWS = tuple(row for name in NAMES for row in ROWS if row.name == name)
# What questions are about, by split.
QUESTIONS = {"red": "new forms", "red-trained": "training forms"}
FORMS = 6


class Size(BaseModel):
    """How many providers of each kind are asked about."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    providers: int = 200
    forms: int = FORMS
    resamples: int = 2000


class LeakageOutcome(BaseModel):
    """The attacks on one row's run with one seed, on one set of questions.

    Attributes:
        bounds: What the run's training record allows any attack; None where nothing is private.
        left_out: Attacks that there were too few providers for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: str
    seed: int
    questions: str
    attacks: list[AttackResult]
    bounds: MembershipBounds | None
    left_out: list[str]


class LeakageResults(BaseModel):
    """All outcomes, and what they were found with.

    Attributes:
        coverage: How often the intervals hold the true value, by simulation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kit_version: str
    torch_version: str
    machine: str
    task: FormSettings
    size: Size
    outcomes: list[LeakageOutcome]
    coverage: list[Coverage] = []


class LeakageExperiment:
    """Attacks on the rows of `seeds` seeds, over the folder of the reproduction, whose runs it uses.

    Args:
        coverage_runs: How many attacks are simulated for each row of the coverage.
        say: Receives what has come out, a line each.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        *,
        task: FormSettings,
        size: Size,
        coverage_runs: int = 1000,
        rows: Sequence[Row] = ATTACKED_ROWS,
        say: Callable[[str], None] = log,
    ) -> None:
        self._kept = folder / "leakage"
        self._measured = self._kept / "measured"
        self._seeds = range(1, seeds + 1)
        self._task = task
        self._size = size
        self._coverage_runs = coverage_runs
        self._say = say
        self._rows = rows
        self._runs = Experiment(folder, seeds, parts=list(map(TrainedRow, rows)), task=task, say=say)

    def run(self, earlier: LeakageResults | None = None) -> Iterator[LeakageResults]:
        """Train, measure and simulate what isn't there yet; yield all outcomes at the end.

        Attacks are kept in the folder, by the models that they attack; of `earlier` results the simulation is kept.
        """
        self._measured.mkdir(parents=True, exist_ok=True)
        yield LeakageResults(
            kit_version=evaluator_version(),
            torch_version=torch.__version__,
            machine=machine(),
            task=self._task,
            size=self._size,
            outcomes=list(self._outcomes()),
            coverage=self._coverage(earlier.coverage if earlier else []),
        )

    def forget(self, earlier: LeakageResults | None = None) -> None:
        """Delete the attacks and what was measured; models of the present code are kept."""
        shutil.rmtree(self._kept, ignore_errors=True)

    def _coverage(self, kept: list[Coverage]) -> list[Coverage]:
        same = kept and {found.runs for found in kept} == {self._coverage_runs}
        return kept if same else simulate_coverage(self._coverage_runs)

    def _outcomes(self) -> Iterator[LeakageOutcome]:
        for row in self._rows:
            for seed in self._seeds:
                run = self._runs.run_folder(row, seed)
                for split in QUESTIONS:
                    outcome = self._kept_outcome(row, seed, split) or self._attacked(row, seed, split, run)
                    auc = outcome.attacks[0].measures[Statistic.AUC]
                    self._say(
                        f"{row.title}, seed {seed}, {QUESTIONS[split]}: AUC {auc.value:.3f} "
                        f"({auc.low:.3f} to {auc.high:.3f})"
                    )
                    yield outcome

    def _kept_outcome(self, row: Row, seed: int, split: str) -> LeakageOutcome | None:
        """Return what an earlier call found, of the same models with the same attacks."""
        try:
            return LeakageOutcome.model_validate_json(self._outcome_file(row, seed, split).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def _outcome_file(self, row: Row, seed: int, split: str) -> Path:
        made_of = {
            "models": [sha256_of(_checkpoint(self._runs.run_folder(row, each))) for each in self._seeds],
            "questions": [self._questions(each).name for each in self._seeds],
            "size": self._size.model_dump(),
            "code": [sha256_of(path) for path in sorted(Path(models.__file__).parent.glob("*.py"))],
        }
        digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
        return self._kept / f"{row.name}-{seed}-{split}-{digest}.json"

    def _attacked(self, row: Row, seed: int, split: str, run: Path) -> LeakageOutcome:
        references = [
            reference_features(
                _checkpoint(self._runs.run_folder(row, other)),
                tiny_vt5.FOLDER,
                Dataset(self._questions(other), split),
                kept=self._measured,
            )
            for other in self._seeds
            if other != seed
        ]
        found = assess_checkpoint(
            _checkpoint(run),
            tiny_vt5.FOLDER,
            Dataset(self._questions(seed), split),
            # Forms have no field that a provider has in common: there is nothing to memorize that could be asked for.
            options=Options(memorization=False, resamples=self._size.resamples),
            references=references,
            kept=self._measured,
        )
        outcome = LeakageOutcome(
            row=row.name,
            seed=seed,
            questions=split,
            attacks=found.attacks,
            bounds=_bounds(run),
            left_out=found.left_out,
        )
        replace_file(self._outcome_file(row, seed, split), outcome.model_dump_json())
        return outcome

    def _questions(self, seed: int) -> Path:
        """Return the folder of the attacks' splits for a seed, made where it isn't there."""
        size = self._size
        folder = self._kept / f"questions-{seed}-{task_key(self._task, seed)}-{size.providers}-{size.forms}"
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            (unfinished / "images").mkdir(parents=True, exist_ok=True)
            write_info(unfinished, read_info(self._runs.data(seed)))
            settings = self._task.model_copy(update={"seed": seed})
            write_red_splits(unfinished, settings, providers=size.providers, forms=size.forms)
            unfinished.rename(folder)
        return folder


def _checkpoint(run: Path) -> Path:
    return RunFolder(run).file(ArtifactKind.CHECKPOINT)


def _bounds(run: Path) -> MembershipBounds | None:
    if not (run / FILES[ArtifactKind.TRAINING_RECORD]).is_file():
        return None
    record = RunFolder(run).record(max_rounds=MAX_ROUNDS)
    return membership_bounds(privacy_profiles(releases(record, SamplingRule.TWO_STAGE)), record.run.delta)
