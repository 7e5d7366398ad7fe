"""Rehearse training at full size, and write the measured table: python -m tests.studies.rehearsal docs/full-size.md

What was measured is kept beside the page, in full-size.json. The same command continues after an interruption with the
stages that are missing, or whose settings have changed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from starter_kit.console import log
from starter_kit.reporting.files import replace_file
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from tests.studies.rehearsal.inputs import SLICE, Shape, make_base, make_data
from tests.studies.rehearsal.machine import OtherWork, machine_name
from tests.studies.rehearsal.page import with_table
from tests.studies.rehearsal.results import Conditions, Results, StageResult, settings_sha256
from tests.studies.rehearsal.stages import Measured, Stages

PRIVATE = "full/fl-provider-dp-epsilon-8"
# The stage of two private rounds, the second of which is killed and resumed.
ROUNDS = "rounds"
SLICE_CHANGES = ["rounds=2", "sampling.client_rate=1.0", "sampling.provider_rate=0.25"]


def main() -> None:
    """Measure the stages that are missing, and write the page after each."""
    given = _arguments()
    stages = [*of_each_method(), ROUNDS]
    numbers = given.page.with_suffix(".json")
    conditions = Conditions(
        shape=Shape.scaled(given.scale), tiny=given.tiny, batch_size=given.batch_size, changes=given.set
    )
    results = Results.kept(numbers, conditions)
    with _work_folder(given.work) as work:
        for stage in given.stage or stages:
            sha256 = settings_sha256(_config(stage), _changes(stage, conditions))
            if results.current(stage, sha256) and not given.again:
                continue
            results = results.with_stage(_measured(stage, sha256, work, conditions), stages)
            # After each stage: what was measured in hours isn't lost with the next one.
            results.write(numbers)
            _write(given.page, results, stages)
    _write(given.page, results, stages)


def _write(page: Path, results: Results, stages: Sequence[str]) -> None:
    replace_file(page, with_table(page.read_text(encoding="utf-8"), results, stages))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path, help="the page with the marked section")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, 1 for the published one")
    parser.add_argument("--tiny", action="store_true", help="the tiny VT5 in place of the real one")
    parser.add_argument(
        "--work",
        type=Path,
        help="where data and base weights are kept for the next time: 15 GB for the real size; by default a temporary "
        "folder",
    )
    parser.add_argument("--batch-size", type=int, help="examples in a step, where a config has more")
    parser.add_argument("--set", action="append", default=[], help="a setting to change, as for pfl train")
    parser.add_argument(
        "--stage",
        action="append",
        choices=[*of_each_method(), ROUNDS],
        metavar="NAME",
        help=f"a config whose step is measured, or {ROUNDS}; by default a full config of each method, and {ROUNDS}",
    )
    parser.add_argument("--again", action="store_true", help="measure also what was measured before")
    return parser.parse_args()


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


if __name__ == "__main__":
    main()
