"""Real brokers of every kind for the worker, and a worker's folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.evaluator.tiny_track import write_reference, write_test_set
from tests.evaluator.worker.brokers import Brokers
from tests.evaluator.worker.office import Office


@pytest.fixture(scope="package")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """The running brokers by kind."""
    brokers = Brokers(tmp_path_factory.mktemp)
    yield brokers
    brokers.stop()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker's folder with a reference and a test set."""
    home = tmp_path_factory.mktemp("evaluator")
    write_reference(home / "references" / "tiny")
    write_test_set(home / "test_sets" / "secret")
    return home


@pytest.fixture
def new_office(home: Path, tmp_path: Path) -> Iterator[Callable[[str], Office]]:
    """Opens offices without workers at the broker of a URL, which end with the test."""
    offices: list[Office] = []

    def open_office(url: str) -> Office:
        offices.append(Office(url, home, tmp_path))
        return offices[-1]

    yield open_office
    for office in offices:
        office.close()
