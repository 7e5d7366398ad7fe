"""Stores that fail, lose a file, or are full."""

import time
from collections.abc import Callable
from contextlib import ExitStack

from tests.faults.proxy import Fault
from tests.faults.trials import Trial

AWAY_S = 60
SUBMISSIONS = 12
REMOVE_NEWEST_CHECKPOINT = """
from docvqa_site.submissions.models import Artifact
from docvqa_site.uploads.stores import current_store
checkpoints = Artifact.objects.filter(kind="checkpoint")
current_store().delete(checkpoints.latest("created_at").upload.store_key)
"""


def failing_store(fault: Fault) -> Callable[[Trial], None]:
    """Return a scenario in which the S3 server fails in this way for a minute."""

    def inflict(trial: Trial) -> None:
        store = trial.site.back_ends.store_proxy
        with ExitStack() as away:
            with trial.idle_workers():
                trial.traffic.submit(SUBMISSIONS)
                trial.traffic.wait_until_submitted()
                away.enter_context(store.failing(fault))
                trial.faults += 1
            trial.traffic.submit(2)
            time.sleep(AWAY_S)

    return inflict


def move_folder_away(trial: Trial) -> None:
    """Let the store's folder be something else for a minute, as when its disk isn't mounted."""
    store = trial.site.home / "store"
    with trial.idle_workers():
        trial.traffic.submit(SUBMISSIONS)
        trial.traffic.wait_until_submitted()
        away = store.rename(store.with_name("store.away"))
        store.touch()
        trial.faults += 1
    trial.traffic.submit(2)
    time.sleep(AWAY_S)
    store.unlink()
    away.rename(store)


def remove_file(trial: Trial) -> None:
    """Remove the checkpoint of one submission before a worker has fetched it."""
    with trial.idle_workers():
        trial.traffic.submit(1)
        trial.traffic.wait_until_submitted()
        _remove_newest_checkpoint(trial)
        trial.faults += 1
        trial.traffic.submit(3)


def fill_disk(trial: Trial) -> None:
    """Fill the disk with the site's database, store and messages, and make room again half a minute later."""
    trial.traffic.submit(SUBMISSIONS)
    ballast = trial.site.home / "ballast"
    with ballast.open("wb", buffering=0) as file:
        trial.faults += 1
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                file.write(bytes(64 * 1024))
            except OSError:
                time.sleep(0.05)
    trial.traffic.submit(2)
    ballast.unlink()


def _remove_newest_checkpoint(trial: Trial) -> None:
    trial.site.manage("shell", "--no-imports", "-v", "0", "-c", REMOVE_NEWEST_CHECKPOINT)
