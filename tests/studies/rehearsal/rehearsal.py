"""A rehearsal: the stages that have no result for the present settings are measured, one after another."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starter_kit.console import log
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from tests.studies.rehearsal.inputs import SLICE, make_base, make_data
from tests.studies.rehearsal.machine import OtherWork, machine_name
from tests.studies.rehearsal.results import Conditions, Results, StageResult, settings_sha256
from tests.studies.rehearsal.stages import Measured, Stages

PRIVATE = "full/fl-provider-dp-epsilon-8"
# The stage of two private rounds, the second of which is killed and resumed.
ROUNDS = "rounds"
SLICE_CHANGES = ["rounds=2", "sampling.client_rate=1.0", "sampling.provider_rate=0.25"]


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal measures.

    Attributes:
        chosen: Stages to measure; all of them where none is named.
        work: Where data and base weights are kept for the next time; None for a temporary folder.
    """

    conditions: Conditions
    chosen: Sequence[str] = ()
    work: Path | None = None

    def run(self, earlier: Results | None) -> Iterator[Results]:
        """Yield the results as they were, and after each stage that is measured."""
        results = Results.of(self.conditions, earlier)
        yield results
        with _work_folder(self.work) as work:
            for stage in self.chosen or stage_names():
                sha256 = settings_sha256(_config(stage), _changes(stage, self.conditions))
                if not results.current(stage, sha256):
                    result = _measured(stage, sha256, work, self.conditions)
                    results = results.with_stage(result, stage_names())
                    yield results

    def forget(self, earlier: Results | None) -> Results | None:
        """Return the results without those of the chosen stages."""
        return earlier and earlier.without(self.chosen or stage_names())


def stage_names() -> list[str]:
    """Return the names of all stages."""
    return [*of_each_method(), ROUNDS]


@contextmanager
def _work_folder(chosen: Path | None) -> Iterator[Path]:
    if chosen:
        chosen.mkdir(parents=True, exist_ok=True)
        yield chosen
        return
    with tempfile.TemporaryDirectory() as work:
        yield Path(work)


def _measured(stage: str, sha256: str, work: Path, conditions: Conditions) -> StageResult:
    base = made_once(
        work / ("tiny-base" if conditions.tiny else "base"),
        lambda folder: make_base(folder, tiny=conditions.tiny),
    )
    shape = SLICE if stage == ROUNDS else conditions.shape
    data = made_once(work / f"data-{shape.pages}", lambda folder: make_data(folder, shape))
    changes, others = _changes(stage, conditions), OtherWork()
    with tempfile.TemporaryDirectory(dir=work) as out:
        rows = _rows(stage, Stages(data, base, Path(out), changes))
    for row in rows:
        log(row)
    return StageResult(
        stage=stage, settings_sha256=sha256, machine=machine_name(), other_work=others.share, rows=rows
    )


def _rows(stage: str, stages: Stages) -> list[Measured]:
    return stages.interrupted_run(PRIVATE) if stage == ROUNDS else [stages.plan(stage)]


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return `folder`, after `make` has written it where it wasn't there."""
    if not folder.exists():
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
            made = Path(unfinished) / folder.name
            make(made)
            made.rename(folder)
        log(f"{folder.name}: made in {time.perf_counter() - began:.0f} s")
    return folder


def of_each_method() -> list[str]:
    """Return a full config of each method, and another one where it also trains adapters."""
    found: dict[tuple[str, bool], str] = {}
    for config in config_names():
        if config.startswith("full/"):
            settings = load_settings(config)
            found.setdefault((settings.method, settings.lora is not None), config)
    return list(found.values())


def _config(stage: str) -> str:
    return PRIVATE if stage == ROUNDS else stage


def _changes(stage: str, conditions: Conditions) -> list[str]:
    settings = load_settings(_config(stage))
    local = settings.local if isinstance(settings, LocalTrainingSettings) else None
    size, changes = conditions.batch_size, list(conditions.changes)
    if size and local and local.batch_size > size:
        changes.append(f"local.batch_size={size}")
    return [*changes, *SLICE_CHANGES] if stage == ROUNDS else changes
