"""What happens when processes die: the work is done all the same, once."""

import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from evaluator.docvqa.dataset import Dataset
from evaluator.messages.jobs import INTAKE_QUEUE
from tests.demo.stack import Stack
from tests.e2e.conftest import make_participant, pfl

pytestmark = pytest.mark.slow

# A site that stands still ends the test; a busy machine doesn't.
PATIENCE_S = 240

FINAL = {"scored", "rejected", "failed"}


def the_run(stack: Stack, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    submissions = requests.get(f"{stack.url}/api/v1/submissions", headers=headers, timeout=30).json()
    address = f"{stack.url}/api/v1/submissions/{submissions['items'][0]['id']}"
    detail = requests.get(address, headers=headers, timeout=30).json()
    run: dict[str, Any] = detail["runs"][0]
    return run


def wait_for(stack: Stack, token: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        run = the_run(stack, token)
        if condition(run):
            return run
        time.sleep(0.5)  # the API lets an account ask 300 times a minute
    raise AssertionError(f"still {json.dumps(run, indent=1)}\n{stack.log_tail('worker')}")


def wait_for_messages(stack: Stack) -> None:
    """Return when the site has taken all that workers sent to it."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(sqlite3.connect(stack.home / "broker.sqlite3")) as broker:
        while broker.execute("SELECT count(*) FROM messages WHERE queue = ?", [INTAKE_QUEUE]).fetchone() != (
            0,
        ):
            assert time.monotonic() < deadline, stack.log_tail("intake")
            time.sleep(0.05)


class MissingPage:
    """The last page of a test set, whose image nobody has yet: scoring waits for it after it has stored a shard."""

    def __init__(self, folder: Path) -> None:
        test_set = Dataset(folder, "test")
        *_, last = dict.fromkeys(question.page for question in test_set.questions)
        self._image = test_set.image_path(last)
        self._image.unlink()
        os.mkfifo(self._image)

    def arrive(self) -> None:
        """Be a file that is no image: by size and time what is there already, so that scoring can go on."""
        arrived = self._image.with_suffix(".arrived")
        arrived.touch()
        time_ns = self._image.stat().st_mtime_ns
        os.utime(arrived, ns=(time_ns, time_ns))
        arrived.replace(self._image)


def wait_for_file(stack: Stack, pattern: str) -> Path:
    """The only file that fits, as soon as the worker has stored it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (files := list(stack.evaluator_home.glob(pattern))):
        assert time.monotonic() < deadline, f"no {pattern}\n{stack.log_tail('worker')}"
        time.sleep(0.05)
    (file,) = files
    return file


def test_a_store_that_was_away_and_a_worker_killed_while_scoring_leave_one_finished_evaluation(
    new_stack: Callable[..., Stack], trained: Path
) -> None:
    stack = new_stack(
        PFL_EVALUATION_BACKOFF_SECONDS="2 2 600",
        PFL_EVALUATION_PROBE_SECONDS="1",
        PFL_EVALUATION_SILENCE_SECONDS="15",
        PFL_WATCHDOG_SECONDS="1",
    )
    page = MissingPage(stack.evaluator_home / "test_sets" / "small")
    token = make_participant(stack, "ada@lab.example", "Engines")
    access = {"PFL_SITE": stack.url, "PFL_TOKEN": token}
    stack.kill_process("worker")
    pfl("submit", trained / "fedavg", "--track", "track-1", "--title", "Interrupted", environment=access)
    store = stack.home / "store"
    store.rename(stack.home / "away")
    stack.start_process("worker")

    retried = wait_for(stack, token, lambda run: run["attempt"] > 1)
    assert retried["state"] not in FINAL
    (stack.home / "away").rename(store)

    shard = wait_for_file(stack, "scoring/*/shard-*.json")
    stored_at = shard.stat().st_mtime_ns
    stack.kill_process("worker")
    page.arrive()
    stack.start_process("worker")

    run = wait_for(stack, token, lambda run: run["state"] in FINAL)
    assert run["state"] == "scored", run["problems"]
    assert shard.stat().st_mtime_ns == stored_at, "what was scored before is not scored again"
    # Nobody is left to report a second finish, if there were one, and what was reported has arrived.
    stack.stop_process("worker")
    wait_for_messages(stack)
    counted = stack.manage(
        *("shell", "--no-imports", "-v", "0", "-c"),
        "from docvqa_site.evaluation.models import Evaluation, StepReport;"
        "from docvqa_site.submissions.models import Submission;"
        "print(Evaluation.objects.filter(state='passed').count(),"
        " StepReport.objects.filter(step='scoring', outcome='passed').count(),"
        " Submission.objects.filter(refunded_at__isnull=False).count())",
    )
    assert counted == "1 1 0"
