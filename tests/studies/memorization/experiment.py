"""Models trained on skewed forms, with and without privacy, and what they know of the providers that they saw.

Three questions are asked of new forms, half of which are of training providers: are they answered better than those of
other providers, does our own attack tell the two apart, and are constants named that are hidden on the page?
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.leakage.assessment import Options
from evaluator.leakage.hiding import Hiding
from evaluator.leakage.models import assess_checkpoint, reference_features
from evaluator.leakage.resampling import Bools, Floats, draws
from evaluator.leakage.results import LeakageResult
from evaluator.leakage.statistics import Statistic
from evaluator.messages.jobs import ArtifactKind
from starter_kit.console import log
from starter_kit.data.forms import SkewedSettings, generate_skewed
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.executed_code import TRAINING, code_sha256
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.training import train
from starter_kit.settings.configuration import load_settings
from starter_kit.site.credentials import Credentials
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.experiment import made_with
from tests.studies.study import completed

CONFIGS = Path(__file__).parent / "configs"
TASK = SkewedSettings(
    providers=100, documents=3, valid_forms=4, test_forms=800, forms_held_out=4, logo_share=0.8
)
SEEDS = (1, 2, 3)
PERMUTATIONS = 2000
# What decides the outcomes: the data, the training and the attacks.
CODE = (*TRAINING, "starter_kit/data/forms/*.py", "evaluator/leakage/*.py")


@dataclass(frozen=True)
class Row:
    """A line of the table: a config with `changes`; none for the base weights."""

    name: str
    title: str
    config: str = ""
    changes: tuple[str, ...] = ()

    @property
    def config_file(self) -> Path:
        """The config's file."""
        return CONFIGS / f"{self.config}.yaml"

    @property
    def settings_sha256(self) -> str:
        """Of the config's bytes and the changes."""
        content = self.config_file.read_bytes() if self.config else b""
        return hashlib.sha256(content + "\n".join(self.changes).encode()).hexdigest()


ROWS = (
    Row("zero-shot", "Base weights"),
    Row("centralized", "Centralized, not private", "centralized"),
    Row("fl-provider-dp-8", "FL-PROVIDER-DP, ε = 8", "fl-provider-dp"),
)


class Frozen(BaseModel):
    """Immutable base of the outcomes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scored(Frozen):
    """The mean ANLS of seen and of unseen providers, and by how much training has moved the two apart.

    Attributes:
        gap: The first less the second, less that difference for the base weights, for which it is chance.
        p_value: The share of permuted labels with which the gap is as large, the real ones counted as one.
    """

    seen: float
    unseen: float
    gap: float
    p_value: float


class Attacked(Frozen):
    """The AUC of our own attack on new forms, with its 95% interval, and how often permuted labels reach as much."""

    auc: float
    low: float
    high: float
    p_value: float


class Hidden(Frozen):
    """Questions about one constant whose answer is hidden on the page, and the share that is answered exactly."""

    field: str
    kind: str
    documents: int
    accuracy: float


class Outcome(Frozen):
    """What one row came to with one seed.

    Attributes:
        epsilon: None where nothing is private.
        recalled: Training providers and others of which a hidden answer was given exactly.
        recall_p_value: Fisher's exact test of these two counts.
        code: The hash of what was executed.
    """

    row: str
    seed: int
    epsilon: float | None
    scored: Scored
    attack: Attacked
    hidden: list[Hidden]
    recalled: tuple[int, int]
    recall_p_value: float
    settings_sha256: str
    code: str
    made_with: str


class Trial(Frozen):
    """Outcomes that the settings were chosen by, and their task without its seed."""

    task: SkewedSettings
    outcomes: list[Outcome]


class Results(Frozen):
    """All outcomes, and the task without its seed.

    Attributes:
        trials: Made before the settings were chosen, in this order; nothing runs them again.
    """

    task: SkewedSettings
    outcomes: list[Outcome]
    trials: list[Trial] = []


class Memorization:
    """All rows with all seeds, in a folder of their own.

    Args:
        say: Receives what came out, a line each.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rows: tuple[Row, ...] = ROWS,
        seeds: tuple[int, ...] = SEEDS,
        task: SkewedSettings = TASK,
        resamples: int = 2000,
        say: Callable[[str], None] = log,
    ) -> None:
        self._folder = folder / "memorization"
        self._wanted = [(row, seed) for seed in seeds for row in rows]
        self._task = task
        self._resamples = resamples
        self._say = say
        # Now, as files may change while this code runs.
        self._code = code_sha256(CODE)

    def run(self, earlier: Results | None = None) -> Iterator[Results]:
        """Yield all outcomes: the `earlier` ones with the same task and settings, and new ones of the rest."""
        same = earlier is not None and earlier.task == self._task
        known = {
            (outcome.row, outcome.seed, outcome.settings_sha256): outcome
            for outcome in (earlier.outcomes if same and earlier else [])
        }
        kept = {
            (row, seed): known[key]
            for row, seed in self._wanted
            if (key := (row.name, seed, row.settings_sha256)) in known
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        for found in completed(self._wanted, kept, self._measured):
            yield Results(task=self._task, outcomes=found, trials=earlier.trials if earlier else [])

    def forget(self, earlier: Results | None = None) -> Results | None:
        """Delete data, models and measurements, and keep no outcome but those of the trials."""
        shutil.rmtree(self._folder, ignore_errors=True)
        return earlier.model_copy(update={"outcomes": []}) if earlier else None

    def _data(self, seed: int) -> Path:
        settings = self._task.model_copy(update={"seed": seed})
        key = hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:8]
        folder = self._folder / f"data-{seed}-{key}"
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            unfinished.mkdir(exist_ok=True)
            generate_skewed(unfinished, unfinished, settings)
            unfinished.rename(folder)
        return folder

    def _measured(self, wanted: tuple[Row, int]) -> Outcome:
        row, seed = wanted
        data = self._data(seed)
        checkpoint, epsilon = tiny_vt5.FOLDER / WEIGHTS, None
        if row.config:
            out = data.with_name(f"{row.name}-{row.settings_sha256[:8]}-{data.name}")
            if not out.exists():
                _train(row, seed, data, out)
            checkpoint = RunFolder(out).file(ArtifactKind.CHECKPOINT)
            epsilon = read_summary(out / SUMMARY).epsilon
        test, measured = Dataset(data, "test"), self._folder / "measured"
        found = assess_checkpoint(
            checkpoint,
            tiny_vt5.FOLDER,
            test,
            options=Options(target_sets=(), resamples=self._resamples),
            kept=measured,
        )
        # Of what was just measured.
        after, before = (
            reference_features(path, tiny_vt5.FOLDER, test, kept=measured)
            for path in (checkpoint, tiny_vt5.FOLDER / WEIGHTS)
        )
        outcome = Outcome(
            row=row.name,
            seed=seed,
            epsilon=epsilon,
            scored=compared(after.g1[:, 1], before.g1[:, 1], after.is_member),
            attack=_attacked(found),
            hidden=_hidden(found),
            recalled=(found.recalled_members, found.recalled_nonmembers),
            recall_p_value=1.0 if found.recall_p_value is None else found.recall_p_value,
            settings_sha256=row.settings_sha256,
            code=self._code,
            made_with=made_with(),
        )
        self._say(
            f"{row.title}, seed {seed}: ANLS {outcome.scored.seen:.3f} seen, {outcome.scored.unseen:.3f} unseen, "
            f"AUC {outcome.attack.auc:.3f}"
        )
        return outcome


def _train(row: Row, seed: int, data: Path, out: Path) -> None:
    train(
        load_settings(str(row.config_file), [*row.changes, f"seed={seed}"]),
        data=data,
        base=tiny_vt5.FOLDER,
        out=out,
        track="memorization",
        credentials=lambda: Credentials(Ed25519PrivateKey.generate(), None),
        watcher=Watcher(),
    )


def compared(after: Floats, before: Floats, is_member: Bools) -> Scored:
    """Return how well providers (P,) are answered after training, members being seen, and before it."""

    def differences(values: Floats, members: Bools) -> Floats:
        return np.asarray(
            (members @ values) / members.sum(axis=-1) - (~members @ values) / (~members).sum(axis=-1)
        )

    gap = float(differences(after - before, is_member))
    permuted = differences(after - before, draws(is_member, PERMUTATIONS).labels)
    return Scored(
        seen=float(after[is_member].mean()),
        unseen=float(after[~is_member].mean()),
        gap=gap,
        p_value=(1 + int((permuted >= gap - 1e-12).sum())) / (1 + PERMUTATIONS),
    )


def _attacked(found: LeakageResult) -> Attacked:
    auc = found.strongest.measures[Statistic.AUC]
    return Attacked(auc=auc.value, low=auc.low, high=auc.high, p_value=auc.p_value)


def _hidden(found: LeakageResult) -> list[Hidden]:
    return [
        Hidden(field=one.field, kind=one.kind, documents=one.documents, accuracy=one.accuracy)
        for one in found.recalls
        if one.model == "submitted" and one.hiding is Hiding.EVIDENCE and one.accuracy is not None
    ]
