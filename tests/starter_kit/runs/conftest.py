"""One private run for the tests of what a run leaves behind."""

from pathlib import Path

import pytest

from starter_kit.runs.folder import RunFolder
from tests.starter_kit.training_runs import trained

CHANGES = ["target_epsilon=4", "sampling.provider_rate=0.5"]


@pytest.fixture(scope="package")
def private(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A private run with a budget of 4. Not to be changed."""
    return trained("fl-provider-dp", base, data, tmp_path_factory.mktemp("private") / "run", CHANGES)
