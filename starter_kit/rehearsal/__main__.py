"""Rehearse training at full size, and write the measured table: python -m starter_kit.rehearsal docs/full-size.md"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from starter_kit.console import log
from starter_kit.rehearsal.inputs import Shape, make_base, make_data
from starter_kit.rehearsal.page import with_table
from starter_kit.rehearsal.stages import Measured, Stages
from starter_kit.settings.configuration import config_names

PRIVATE = "full/fl-provider-dp-epsilon-8"


def main() -> None:
    """Make data and base weights, run the stages, and write the page."""
    given = _arguments()
    page = given.page.read_text(encoding="utf-8")
    shape = Shape.scaled(given.scale)
    with tempfile.TemporaryDirectory(dir=given.work) as work:
        rows = _rehearse(Path(work), shape, given)
    machine = f"{torch.get_num_threads()} threads of a CPU, torch {torch.__version__}"
    given.page.write_text(with_table(page, shape, machine, given.set, rows), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="the page with the marked section")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, 1 for the published one")
    parser.add_argument("--tiny", action="store_true", help="the tiny VT5 in place of the real one")
    parser.add_argument("--work", type=Path, help="where to make data and runs: 5 GB for the real size")
    parser.add_argument(
        "--set", action="append", default=[], help="a setting to change, such as local.batch_size=2"
    )
    parser.add_argument("--config", action="append", help="configs to measure; by default all full ones")
    return parser.parse_args()


def _rehearse(work: Path, shape: Shape, given: argparse.Namespace) -> list[Measured]:
    began = time.perf_counter()
    # The round and its kill are on a slice: as many pages as a few providers have.
    sample = Shape(shape.clients, 4 * shape.clients, 8 * shape.clients, 16 * shape.clients)
    for folder, size in ((work / "data", shape), (work / "slice", sample)):
        make_data(folder, size)
    make_base(work / "base", tiny=given.tiny)
    log(f"data and base weights: {time.perf_counter() - began:.0f} s")
    rows = []
    for config in given.config or [name for name in config_names() if name.startswith("full/")]:
        rows.append(Stages(work / "data", work / "base", work, given.set).plan(config))
        log(rows[-1])
    changes = [*given.set, "rounds=2", "sampling.client_rate=1.0", "sampling.provider_rate=0.125"]
    rows += Stages(work / "slice", work / "base", work, changes).interrupted_run(PRIVATE)
    return rows


if __name__ == "__main__":
    main()
