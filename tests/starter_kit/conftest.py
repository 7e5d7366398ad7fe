from pathlib import Path

import pytest

from tests.starter_kit.pocket_data import make_base, make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder; see `make_data`. Not to be changed."""
    return make_data(tmp_path_factory.mktemp("pocket") / "data")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base weights; see `make_base`. Not to be changed."""
    return make_base(tmp_path_factory.mktemp("pocket") / "base")
