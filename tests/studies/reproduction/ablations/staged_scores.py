"""The scores of a run's model at every stage of its rounds, on the test split.

Rounds of stages leave no run folder: an interruption costs the stages of the run that was under way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.messages.jobs import ScoringResult
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.ablations.rows import STAGED_RUNS, STAGES, TRAINED_ROWS, StagedRun
from tests.studies.reproduction.ablations.stages import Reached, staged_rounds
from tests.studies.reproduction.experiment import Experiment, Part, TrainedRow, made_with, score_of
from tests.studies.reproduction.rows import Outcome, Row


@dataclass(frozen=True)
class StagedScores:
    """All stages of one run: a part of the ablations."""

    run: StagedRun

    @property
    def title(self) -> str:
        """The run's."""
        return self.run.title

    @property
    def rows(self) -> Sequence[Row]:
        """A row for each stage."""
        return [self.run.row(*stage) for stage in STAGES]

    def measure(self, experiment: Experiment, seed: int) -> list[Outcome]:
        """Return the outcome of each stage; clients' scores are averaged."""
        trained = self.run.run
        settings = load_settings(str(trained.config_file), [*trained.changes, f"seed={seed}"])
        setup = RunSetup(settings, data=experiment.data(seed), base=tiny_vt5.FOLDER)
        scores = _Scores(setup)
        return [self._outcome(reached, scores, seed) for reached in staged_rounds(setup)]

    def _outcome(self, reached: Reached, scores: "_Scores", seed: int) -> Outcome:
        row = self.run.row(reached.round, reached.stage)
        found = [scores.of(model) for model in reached.models]
        return Outcome(
            row=row.name,
            seed=seed,
            anls=mean(score.anls for score in found),
            accuracy=mean(score.accuracy for score in found),
            bytes_total=reached.bytes_total,
            epsilon=None,
            settings_sha256=row.settings_sha256,
            made_with=made_with(),
        )


PARTS: list[Part] = [*map(TrainedRow, TRAINED_ROWS), *map(StagedScores, STAGED_RUNS)]


@dataclass(frozen=True)
class _Scores:
    """The scores of the models of one run; a model that several stages have is scored once."""

    setup: RunSetup
    known: list[tuple[Tensor, ScoringResult]] = field(default_factory=list)

    def of(self, weights: Tensor) -> ScoringResult:
        """Return the score of the model at `weights` (d,)."""
        for known, score in self.known:
            if torch.equal(known, weights):
                return score
        with TemporaryDirectory() as folder:
            self.setup.model.save(weights, Path(folder))
            found = score_of(Path(folder) / WEIGHTS, self.setup.data)
        self.known.append((weights, found))
        return found
