"""Reports regularly what the worker has, so that organizers of a track choose among what can be used."""

import hashlib
import logging
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from kombu.exceptions import ChannelError, OperationalError

from evaluator.docvqa.dataset import Dataset
from evaluator.messages.inventories import INVENTORY_TASK, MAX_FOLDERS, Inventory
from evaluator.pipeline import WEIGHTS
from evaluator.worker.celery import TO_INTAKE, WORKER_NAME, app
from evaluator.worker.folder import REFERENCES, TEST_SETS, is_folder_name

logger = logging.getLogger(__name__)

INTERVAL_S = 60.0
# After a report that didn't arrive, such as before the site has made its exchange on a new broker.
RETRY_S = 5.0


def inventory_of(folder: Path, unenforced: Sequence[str] = ()) -> Inventory:
    """Return what is in a worker's folder; what can't be read is left out."""
    return Inventory(
        worker=WORKER_NAME,
        references=dict(islice(_references(folder / REFERENCES), MAX_FOLDERS)),
        test_sets=dict(islice(_test_sets(folder / TEST_SETS), MAX_FOLDERS)),
        leakage_sets=dict(islice(_leakage_sets(folder / TEST_SETS), MAX_FOLDERS)),
        unenforced=list(unenforced),
    )


def report_regularly(folder: Path, unenforced: Sequence[str], stop: threading.Event) -> None:
    """Report what is in the folder now and what isn't enforced, and every minute until `stop` is set."""
    while not stop.wait(INTERVAL_S if _reported(inventory_of(folder, unenforced)) else RETRY_S):
        pass


def _reported(inventory: Inventory) -> bool:
    """Report what a worker has; return whether the broker has the report."""
    # A site of an earlier version knows fewer fields.
    message = inventory.model_dump(mode="json", exclude_defaults=True)
    try:
        app.send_task(INVENTORY_TASK, [message], retry=False, **TO_INTAKE)
    except (OperationalError, ChannelError, OSError):
        logger.warning("what this worker has could not be reported; the next report follows")
        return False
    return True


def _references(folder: Path) -> Iterator[tuple[str, str]]:
    for path in _folders(folder):
        weights = path / WEIGHTS
        if weights.is_file():
            stat = weights.stat()
            yield path.name, _sha256(weights, stat.st_size, stat.st_mtime_ns)


def _test_sets(folder: Path) -> Iterator[tuple[str, str]]:
    for path in _folders(folder):
        try:
            yield path.name, Dataset(path, "test").sha256()
        except OSError:
            logger.info("%s has no split test that can be read", path.name)


def _leakage_sets(folder: Path) -> Iterator[tuple[str, str]]:
    for data in _folders(folder):
        for split in _folders(data):
            if split.name == "test" or not (split / "pages.jsonl").is_file():
                continue
            try:
                yield f"{data.name}/{split.name}", Dataset(data, split.name).sha256()
            except OSError:
                logger.info("%s has a split %s that can't be read", data.name, split.name)


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and is_folder_name(path.name))


@lru_cache(maxsize=2 * MAX_FOLDERS)
def _sha256(path: Path, _size: int, _changed_at: int) -> str:
    """Return the hash of a file, which is read again when its size or time has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
