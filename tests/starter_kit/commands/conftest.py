"""One private run for the tests of all verbs that read runs, and a scored copy of it."""

import shutil
from pathlib import Path

import pytest

from tests.starter_kit.commands.pfl import QUICK, pfl


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    # With the same seed, it answers the same each time.
    pfl("train", "fl-provider-dp", "--data", data, "--base", base, "--out", out, *QUICK, "--set", "seed=1")
    return out


@pytest.fixture(scope="package")
def scored(tmp_path_factory: pytest.TempPathFactory, run: Path, base: Path, data: Path) -> Path:
    """A copy of the run that was evaluated; the file `printed` has what that printed."""
    folder = shutil.copytree(run, tmp_path_factory.mktemp("scored") / "scored")
    printed = pfl("evaluate", folder, "--base", base, "--data", data).stdout
    (folder / "printed").write_text(printed)
    return folder
