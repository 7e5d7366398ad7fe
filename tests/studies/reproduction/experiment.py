"""Every row of the reproduction, trained by the kit's own methods and scored on the test split by the evaluator.

Only what is missing is trained: an outcome that was counted before is kept while its row's settings, the task and the
base are the same, and so is a run that is complete in the experiment's folder. A run that was interrupted starts again,
because a private one that resumed would have spent part of its budget on the round that it lost.
"""

import hashlib
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict

from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.messages.jobs import ArtifactKind, evaluator_version
from evaluator.progress import ignore_progress
from starter_kit.data.forms import FormSettings, generate
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.results import keep_scores
from starter_kit.runs.training import train
from starter_kit.settings.configuration import load_settings
from starter_kit.site.credentials import Credentials
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.rows import ROWS, Outcome, Row
from tests.studies.tiny_vt5.origin import Origin, read_origin

RunKey = tuple[str, int, str]  # of an outcome: its row, its seed and the hash of the row's settings

TRACK = "reproduction"
# Of the published figures.
TASK = FormSettings(providers=1_000, valid_forms=200, test_forms=600)


def key_of(outcome: Outcome) -> RunKey:
    """Return what an outcome is found again by."""
    return outcome.row, outcome.seed, outcome.settings_sha256


def task_key(task: FormSettings, seed: int) -> str:
    """Return what names the folders of a seed's data, and of what is trained on them: a hash of their settings."""
    settings = task.model_copy(update={"seed": seed})
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:8]


def made_with() -> str:
    """Return what trains here: the versions of kit and torch, and the machine."""
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads"
    return f"kit {evaluator_version()}, torch {torch.__version__}, {machine}"


class Results(BaseModel):
    """All outcomes, and what they were found with.

    Attributes:
        base: Of the tiny VT5 that every row starts from.
        task: Of every seed's data, but for the seed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Origin
    task: FormSettings
    outcomes: list[Outcome]

    def kept(self, base: Origin, task: FormSettings) -> dict[RunKey, Outcome]:
        """Return the outcomes that still count for `base` and `task`."""
        same = (self.base, self.task) == (base, task)
        return {key_of(outcome): outcome for outcome in self.outcomes if same}


class Experiment:
    """The rows of `seeds` seeds, in a folder of their own.

    Args:
        say: Receives what was trained and what came out, a line each.
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

    def run(self, earlier: Results | None = None) -> Results:
        """Return the outcomes of all rows and seeds: the `earlier` ones that still count, and new ones of the rest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        base = read_origin()
        kept = earlier.kept(base, self._task) if earlier else {}
        return Results(base=base, task=self._task, outcomes=list(self._outcomes(kept)))

    def forget(self) -> None:
        """Delete the runs of all rows and seeds, so that all are trained again."""
        for row, seed in self._runs():
            shutil.rmtree(self._run_folder(row, seed), ignore_errors=True)

    def _runs(self) -> Iterator[tuple[Row, int]]:
        for row in self._rows:
            for seed in range(1, self._seeds + 1):
                yield row, seed

    def _outcomes(self, kept: Mapping[RunKey, Outcome]) -> Iterator[Outcome]:
        for row, seed in self._runs():
            outcome = kept.get((row.name, seed, row.settings_sha256))
            if outcome is None:
                outcome = self._outcome(row, seed)
                self._say(f"seed {seed}, {row.title}: ANLS {outcome.anls:.4f}")
            yield outcome

    def data(self, seed: int) -> Path:
        """Return the data of a seed, made where it isn't there."""
        folder = self._folder / f"data-{seed}-{task_key(self._task, seed)}"
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            unfinished.mkdir(exist_ok=True)
            generate(unfinished, unfinished, self._task.model_copy(update={"seed": seed}))
            unfinished.rename(folder)
        return folder

    def run_folder(self, row: Row, seed: int) -> Path:
        """Return the run's folder, named after its settings, task and base; trained where it isn't there."""
        out = self._run_folder(row, seed)
        if not out.exists():
            self._train(row, seed, self.data(seed), out)
        return out

    def _run_folder(self, row: Row, seed: int) -> Path:
        made_of = (row.settings_sha256[:8], task_key(self._task, seed), tiny_vt5.digests()[WEIGHTS][:8])
        return self._folder / "-".join((row.name, str(seed), *made_of))

    def _outcome(self, row: Row, seed: int) -> Outcome:
        """Return the scores of a run, made where they aren't there."""
        out = self.run_folder(row, seed)
        summary = read_summary(out / SUMMARY)
        if summary.anls is None or summary.accuracy is None or summary.split != "test":
            checkpoint = RunFolder(out).file(ArtifactKind.CHECKPOINT)
            found = score_checkpoint(
                checkpoint,
                base=tiny_vt5.FOLDER,
                data=self.data(seed),
                split="test",
                on_progress=ignore_progress,
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
            made_with=made_with(),
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
