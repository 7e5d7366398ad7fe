"""Every row of the reproduction, trained by the kit's own methods and scored on the test split by the evaluator.

Only what is missing is trained: an outcome that was counted before is kept while its row's settings, the task and the
base are the same, or with `--again`, if the present code made it. A complete run in the experiment's folder is kept
while all of these are the same. A run that was interrupted starts again, because a private one that resumed would have
spent part of its budget on the round that it lost.
"""

import hashlib
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict

from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.messages.jobs import ArtifactKind, ScoringResult, evaluator_version
from evaluator.messages.progress import ignore_progress
from starter_kit.console import log
from starter_kit.data.forms import FormSettings, generate
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.executed_code import TRAINING, code_sha256
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.results import keep_scores
from starter_kit.runs.training import train
from starter_kit.settings.configuration import load_settings
from starter_kit.site.credentials import Credentials
from starter_kit.weights import tiny_vt5
from tests.studies.covered_code import read_without_sentences
from tests.studies.reproduction.rows import ROWS, Outcome, Row
from tests.studies.study import completed
from tests.studies.tiny_vt5.origin import Origin, read_origin

RunKey = tuple[str, int, str]  # of an outcome: its row, its seed and the hash of the row's settings

TRACK = "reproduction"
# Of the published figures.
TASK = FormSettings(providers=1_000, valid_forms=200, test_forms=600)
# What decides an outcome: the data, the training and the scores.
SCORING = ("__init__", "groups", "metrics", "predictions", "split")
CODE = (*TRAINING, "starter_kit/data/forms/*.py", *(f"evaluator/scoring/{name}.py" for name in SCORING))


def key_of(outcome: Outcome) -> RunKey:
    """Return what an outcome is found again by."""
    return outcome.row, outcome.seed, outcome.settings_sha256


def task_key(task: FormSettings, seed: int) -> str:
    """Return what names the folders of a seed's data, and of what is trained on them: a hash of their settings."""
    settings = task.model_copy(update={"seed": seed})
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:8]


def made_with() -> str:
    """Return what trains here: the versions of kit and torch, the machine, and the code's hash."""
    return f"kit {evaluator_version()}, torch {torch.__version__}, {machine()}, code {code()[:8]}"


@cache
def code() -> str:
    """Return the hash of the code, as it was when it was first asked for: files may change while it runs."""
    return code_sha256(CODE, read=read_without_sentences)


def machine() -> str:
    """Return the machine, and how many threads torch uses."""
    threads = torch.get_num_threads()
    return f"{platform.machine()}, {threads} thread{'s' * (threads > 1)}"


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


class MadeOutcome(Protocol):
    """An outcome that says what made it."""

    @property
    def made_with(self) -> str:
        """See `made_with`."""


SomeOutcome = TypeVar("SomeOutcome", bound=MadeOutcome)


class Part(Protocol):
    """What is measured at once, with each seed."""

    @property
    def title(self) -> str:
        """Its name in the log."""

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of its outcomes."""

    def measure(self, experiment: "Experiment", seed: int) -> list[Outcome]:
        """Return an outcome of each row, in this order."""


class Experiment:
    """The parts with `seeds` seeds, in a folder of their own.

    Args:
        once: Parts that are measured with the first seed alone.
        say: Receives what was trained and what came out, a line each.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        *,
        parts: Sequence[Part],
        once: Sequence[Part] = (),
        task: FormSettings = TASK,
        say: Callable[[str], None] = log,
    ) -> None:
        self._folder = folder
        self._wanted = [(part, seed) for part in parts for seed in range(1, seeds + 1)]
        self._wanted += [(part, 1) for part in once]
        self._task = task
        self._say = say
        code()

    def run(self, earlier: Results | None = None) -> Iterator[Results]:
        """Yield the outcomes of all parts and seeds: the `earlier` ones that still count, and new ones of the rest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        base = read_origin()
        known = earlier.kept(base, self._task) if earlier else {}
        kept = {
            (part, seed): [known[key] for key in _keys(part, seed)]
            for part, seed in self._wanted
            if all(key in known for key in _keys(part, seed))
        }
        for found in completed(self._wanted, kept, self._measured):
            yield Results(base=base, task=self._task, outcomes=list(chain.from_iterable(found)))

    def forget(self, earlier: Results | None) -> Results | None:
        """Keep the outcomes that were made as they would be now."""
        if earlier is None:
            return None
        return earlier.model_copy(update={"outcomes": made_here(earlier.outcomes)})

    def _measured(self, wanted: tuple[Part, int]) -> list[Outcome]:
        part, seed = wanted
        outcomes = part.measure(self, seed)
        self._say(f"seed {seed}, {part.title}: ANLS {outcomes[-1].anls:.4f}")
        return outcomes

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
        """Return the run's folder, named after its settings, task, base and code; trained where it isn't there."""
        out = self._run_folder(row, seed)
        if not out.exists():
            self._train(row, seed, self.data(seed), out)
        return out

    def _run_folder(self, row: Row, seed: int) -> Path:
        base = tiny_vt5.digests()[WEIGHTS]
        made_of = (row.settings_sha256[:8], task_key(self._task, seed), base[:8], code()[:8])
        return self._folder / "-".join((row.name, str(seed), *made_of))

    def _train(self, row: Row, seed: int, data: Path, out: Path) -> None:
        train(
            load_settings(str(row.config_file), [*row.changes, f"seed={seed}"]),
            data=data,
            base=tiny_vt5.FOLDER,
            out=out,
            track=TRACK,
            credentials=lambda: Credentials(Ed25519PrivateKey.generate(), None),
            watcher=Watcher(),
        )


def made_here(outcomes: Sequence[SomeOutcome]) -> list[SomeOutcome]:
    """Return those that the same code, versions and kind of machine made as are here."""
    return [outcome for outcome in outcomes if outcome.made_with == made_with()]


def _keys(part: Part, seed: int) -> list[RunKey]:
    return [(row.name, seed, row.settings_sha256) for row in part.rows]


@dataclass(frozen=True)
class TrainedRow:
    """A row whose run is trained and scored on the test split."""

    row: Row

    @property
    def title(self) -> str:
        """The row's."""
        return self.row.title

    @property
    def rows(self) -> Sequence[Row]:
        """The row alone."""
        return (self.row,)

    def measure(self, experiment: Experiment, seed: int) -> list[Outcome]:
        """Return the scores of the run, made where they are missing."""
        out = experiment.run_folder(self.row, seed)
        summary = read_summary(out / SUMMARY)
        if summary.anls is None or summary.accuracy is None or summary.split != "test":
            checkpoint = RunFolder(out).file(ArtifactKind.CHECKPOINT)
            keep_scores(out, score_of(checkpoint, experiment.data(seed)), "test")
            summary = read_summary(out / SUMMARY)
        return [
            Outcome(
                row=self.row.name,
                seed=seed,
                anls=summary.anls or 0.0,
                accuracy=summary.accuracy or 0.0,
                bytes_total=summary.bytes_total,
                epsilon=summary.epsilon,
                settings_sha256=self.row.settings_sha256,
                made_with=made_with(),
            )
        ]


PARTS = [TrainedRow(row) for row in ROWS]


def score_of(checkpoint: Path, data: Path, split: str = "test") -> ScoringResult:
    """Return the score of a checkpoint on a split of `data`."""
    base, silent = tiny_vt5.FOLDER, ignore_progress
    return score_checkpoint(checkpoint, base=base, data=data, split=split, on_progress=silent).result
