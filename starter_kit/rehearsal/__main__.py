"""Rehearse training at full size, and write the measured table: python -m starter_kit.rehearsal docs/full-size.md"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from starter_kit.console import log
from starter_kit.rehearsal.inputs import Shape, make_base, make_data
from starter_kit.rehearsal.machine import Machine
from starter_kit.rehearsal.page import with_table
from starter_kit.rehearsal.stages import Measured, Stages
from starter_kit.settings.configuration import config_names, load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings

PRIVATE = "full/fl-provider-dp-epsilon-8"
UNFINISHED = "This rehearsal was stopped before its end: stages that are not listed were not measured."
# What the private rounds train on: as many pages as a few providers have.
SLICE = Shape(2, 16, 20, 24)
SLICE_CHANGES = ["rounds=2", "sampling.client_rate=1.0", "sampling.provider_rate=0.25"]


def main() -> None:
    """Make data and base weights, run the stages, and write the page."""
    given = _arguments()
    page = given.page.read_text(encoding="utf-8")
    shape, machine = Shape.scaled(given.scale), Machine()
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory(dir=given.work) as work:
        for row in _rehearse(Path(work), shape, given):
            log(row)
            rows.append(row)
            # After each stage: what was measured in hours isn't lost with the next one.
            _write(given, page, shape, f"{_conditions(given, machine)} {UNFINISHED}", rows)
    _write(given, page, shape, _conditions(given, machine), rows)


def _write(
    given: argparse.Namespace, page: str, shape: Shape, conditions: str, rows: Sequence[Measured]
) -> None:
    given.page.write_text(with_table(page, shape, conditions, rows), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="the page with the marked section")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, 1 for the published one")
    parser.add_argument("--tiny", action="store_true", help="the tiny VT5 in place of the real one")
    parser.add_argument("--work", type=Path, help="where to make data and runs: 15 GB for the real size")
    parser.add_argument("--batch-size", type=int, help="examples in a step, where a config has more")
    parser.add_argument("--set", action="append", default=[], help="a setting to change, as for pfl train")
    parser.add_argument(
        "--config", action="append", help="configs to measure; by default a full one of each method"
    )
    return parser.parse_args()


def _rehearse(work: Path, shape: Shape, given: argparse.Namespace) -> Iterator[Measured]:
    began = time.perf_counter()
    for folder, size in ((work / "data", shape), (work / "slice", SLICE)):
        make_data(folder, size)
    make_base(work / "base", tiny=given.tiny)
    log(f"data and base weights: {time.perf_counter() - began:.0f} s")
    for config in given.config or of_each_method():
        yield Stages(work / "data", work / "base", work, _changes(config, given)).plan(config)
    changes = [*_changes(PRIVATE, given), *SLICE_CHANGES]
    yield from Stages(work / "slice", work / "base", work, changes).interrupted_run(PRIVATE)


def of_each_method() -> list[str]:
    """Return a full config of each method, and another one where it also trains adapters."""
    found: dict[tuple[str, bool], str] = {}
    for config in config_names():
        if config.startswith("full/"):
            settings = load_settings(config)
            found.setdefault((settings.method, settings.lora is not None), config)
    return list(found.values())


def _changes(config: str, given: argparse.Namespace) -> list[str]:
    settings = load_settings(config)
    local = settings.local if isinstance(settings, LocalTrainingSettings) else None
    if given.batch_size and local and local.batch_size > given.batch_size:
        return [*given.set, f"local.batch_size={given.batch_size}"]
    return list(given.set)


def _conditions(given: argparse.Namespace, machine: Machine) -> str:
    batches = f", with batches of {given.batch_size} at most" if given.batch_size else ""
    changed = "".join(f", `{change}`" for change in given.set)
    return (
        f"Steps are on these data; the rounds are on {SLICE.providers} providers with {SLICE.pages} pages, of which a "
        f"quarter takes part. Measured on {machine}{batches}{changed}."
    )


if __name__ == "__main__":
    main()
