"""Every row of the reproduction, trained by the kit's own methods and scored on the test split by the evaluator.

What is finished is kept, so that an experiment that was interrupted goes on where it stopped.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict

from evaluator.contracts import ArtifactKind, evaluator_version
from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.progress import ignore_progress
from starter_kit.data.forms import FormSettings, generate
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.reproduction.rows import ROWS, Outcome, Row
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.results import keep_scores
from starter_kit.runs.training import train
from starter_kit.settings.configuration import load_settings
from starter_kit.site.credentials import Credentials
from starter_kit.weights import tiny_vt5
from starter_kit.weights.tiny_vt5.origin import Origin, read_origin

TRACK = "reproduction"
# Of the published figures.
TASK = FormSettings(providers=1_000, valid_forms=200, test_forms=600)


class Results(BaseModel):
    """All outcomes, and what they were found with.

    Attributes:
        base: Of the tiny VT5 that every row starts from.
        task: Of every seed's data, but for the seed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kit_version: str
    torch_version: str
    machine: str
    base: Origin
    task: FormSettings
    outcomes: list[Outcome]


class Experiment:
    """The rows of `seeds` seeds, in a folder of their own.

    Args:
        say: Told what begins and what has come out, a line each.
        watch: A watcher for each training.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        *,
        task: FormSettings,
        say: Callable[[str], None],
        watch: Callable[[str], Watcher] = lambda _: Watcher(),
        rows: Sequence[Row] = ROWS,
    ) -> None:
        self._folder = folder
        self._seeds = seeds
        self._task = task
        self._say = say
        self._watch = watch
        self._rows = rows

    def run(self) -> Results:
        """Whatever isn't there yet is made; the outcomes of all rows and seeds."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return Results(
            kit_version=evaluator_version(),
            torch_version=torch.__version__,
            machine=f"{platform.machine()}, {torch.get_num_threads()} threads",
            base=read_origin(),
            task=self._task,
            outcomes=list(self._outcomes()),
        )

    def _outcomes(self) -> Iterator[Outcome]:
        for seed in range(1, self._seeds + 1):
            data = self.data(seed)
            for row in self._rows:
                outcome = self._outcome(row, seed, data)
                self._say(f"seed {seed}, {row.title}: ANLS {outcome.anls:.4f}")
                yield outcome

    def data(self, seed: int) -> Path:
        """Return the data of a seed, made where it isn't there."""
        folder = self._folder / f"data-{seed}"
        if not folder.exists():
            unfinished = self._folder / f"data-{seed}.unfinished"
            unfinished.mkdir(exist_ok=True)
            generate(unfinished, unfinished, self._task.model_copy(update={"seed": seed}))
            unfinished.rename(folder)
        return folder

    def run_folder(self, row: Row, seed: int) -> Path:
        """Return the run's folder, named after the row's settings and the base; trained where it isn't there."""
        out = self._folder / f"{row.name}-{seed}-{row.settings_sha256[:8]}-{tiny_vt5.digests()[WEIGHTS][:8]}"
        if not out.exists():
            self._train(row, seed, self.data(seed), out)
        return out

    def _outcome(self, row: Row, seed: int, data: Path) -> Outcome:
        """Return the scores of a run, made where they aren't there."""
        out = self.run_folder(row, seed)
        summary = read_summary(out / SUMMARY)
        if summary.anls is None or summary.accuracy is None or summary.split != "test":
            checkpoint = RunFolder(out).file(ArtifactKind.CHECKPOINT)
            found = score_checkpoint(
                checkpoint, base=tiny_vt5.FOLDER, data=data, split="test", on_progress=ignore_progress
            )
            keep_scores(out, found.result, "test")
            summary = read_summary(out / SUMMARY)
        return Outcome(
            row=row.name,
            seed=seed,
            anls=summary.anls or 0.0,
            accuracy=summary.accuracy or 0.0,
            bytes_total=summary.bytes_total,
            epsilon=summary.epsilon,
            settings_sha256=row.settings_sha256,
        )

    def _train(self, row: Row, seed: int, data: Path, out: Path) -> None:
        train(
            load_settings(str(row.config_file), [*row.changes, f"seed={seed}"]),
            data=data,
            base=tiny_vt5.FOLDER,
            out=out,
            track=TRACK,
            credentials=lambda: Credentials(Ed25519PrivateKey.generate(), None),
            watcher=self._watch(row.name),
        )
