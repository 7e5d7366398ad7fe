"""The ablations: rows trained as the reproduction's, and the stages of rounds, both scored on the test split.

What is kept is kept as in the reproduction, except that the rounds of stages leave no run folder: an interruption costs
all stages that were found since the outcomes were last written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.messages.jobs import ScoringResult
from evaluator.progress import ignore_progress
from starter_kit.data.forms import FormSettings
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.ablations.rows import STAGED_RUNS, STAGES, TRAINED_ROWS, StagedRun
from tests.studies.reproduction.ablations.stages import staged_rounds
from tests.studies.reproduction.experiment import Experiment, Results, RunKey, made_with
from tests.studies.reproduction.rows import Outcome, Row


class AblationExperiment:
    """The ablations with `seeds` seeds, over the folder of the reproduction, whose data it uses.

    Args:
        say: Receives what was trained and what came out, a line each.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        *,
        task: FormSettings,
        say: Callable[[str], None],
        rows: Sequence[Row] = TRAINED_ROWS,
        staged_runs: Sequence[StagedRun] = STAGED_RUNS,
    ) -> None:
        self._experiment = Experiment(folder, seeds, task=task, say=say, rows=rows)
        self._seeds = seeds
        self._say = say
        self._staged_runs = staged_runs

    def run(self, earlier: Results | None = None) -> Results:
        """Return the outcomes of all rows and stages: the `earlier` ones that still count, and new ones of the rest."""
        trained = self._experiment.run(earlier)
        kept = earlier.kept(trained.base, trained.task) if earlier else {}
        return trained.model_copy(update={"outcomes": [*trained.outcomes, *self._staged(kept)]})

    def forget(self) -> None:
        """Delete the runs of all rows and seeds, so that all are trained again."""
        self._experiment.forget()

    def _staged(self, kept: Mapping[RunKey, Outcome]) -> Iterator[Outcome]:
        for run in self._staged_runs:
            rows = [run.row(*stage) for stage in STAGES]
            for seed in range(1, self._seeds + 1):
                found = [kept.get((row.name, seed, row.settings_sha256)) for row in rows]
                outcomes = [outcome for outcome in found if outcome]
                if len(outcomes) < len(rows):
                    outcomes = list(self._stages(run, seed))
                    self._say(f"seed {seed}, {run.title}: ANLS {outcomes[-1].anls:.4f}")
                yield from outcomes

    def _stages(self, run: StagedRun, seed: int) -> Iterator[Outcome]:
        data = self._experiment.data(seed)
        settings = load_settings(str(run.run.config_file), [*run.run.changes, f"seed={seed}"])
        setup = RunSetup(settings, data=data, base=tiny_vt5.FOLDER)
        scores = _Scores(setup)
        for reached in staged_rounds(setup):
            row = run.row(reached.round, reached.stage)
            found = [scores.of(model) for model in reached.models]
            yield Outcome(
                row=row.name,
                seed=seed,
                anls=mean(score.anls for score in found),
                accuracy=mean(score.accuracy for score in found),
                bytes_total=reached.bytes_total,
                epsilon=None,
                settings_sha256=row.settings_sha256,
                made_with=made_with(),
            )


class _Scores:
    """The scores of the models of one run; a model that several stages have is scored once."""

    def __init__(self, setup: RunSetup) -> None:
        self._setup = setup
        self._known: list[tuple[Tensor, ScoringResult]] = []

    def of(self, weights: Tensor) -> ScoringResult:
        """Return the score of the model at `weights` (d,)."""
        for known, score in self._known:
            if torch.equal(known, weights):
                return score
        with TemporaryDirectory() as folder:
            self._setup.model.save(weights, Path(folder))
            found = score_checkpoint(
                Path(folder) / WEIGHTS,
                base=tiny_vt5.FOLDER,
                data=self._setup.data,
                split="test",
                on_progress=ignore_progress,
            )
        self._known.append((weights, found.result))
        return found.result
