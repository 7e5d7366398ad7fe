"""What happens when processes die: the work is done all the same, once."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from evaluator.docvqa.dataset import Dataset, write_split
from tests.demo.stack import Stack
from tests.e2e.conftest import make_participant, pfl

pytestmark = pytest.mark.e2e

FINAL = {"scored", "rejected", "failed"}


def the_run(stack: Stack, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    submissions = requests.get(f"{stack.url}/api/v1/submissions", headers=headers, timeout=30).json()
    address = f"{stack.url}/api/v1/submissions/{submissions['items'][0]['id']}"
    detail = requests.get(address, headers=headers, timeout=30).json()
    run: dict[str, Any] = detail["runs"][0]
    return run


def wait_for(
    stack: Stack, token: str, condition: Callable[[dict[str, Any]], bool], timeout_s: float
) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        run = the_run(stack, token)
        if condition(run):
            return run
        time.sleep(0.5)  # the API lets an account ask 300 times a minute
    raise AssertionError(f"still {json.dumps(run, indent=1)}\n{stack.log_tail('worker')}")


def lengthen_test_set(folder: Path, factor: int) -> int:
    """Ask every question of a test set `factor` times, so that scoring takes long enough to be interrupted."""
    dataset = Dataset(folder, "test")
    pages, questions = list(dataset.pages.values()), dataset.questions
    repeated = [
        question.model_copy(update={"question_id": f"{question.question_id}-{number}"})
        for number in range(factor)
        for question in questions
    ]
    write_split(folder, "test", pages, repeated)
    return len(repeated)


def test_a_store_that_was_away_and_a_worker_killed_while_scoring_leave_one_finished_evaluation(
    new_stack: Callable[..., Stack], trained: Path
) -> None:
    stack = new_stack(
        PFL_EVALUATION_BACKOFF_SECONDS="2 2 600",
        PFL_EVALUATION_PROBE_SECONDS="1",
        PFL_EVALUATION_SILENCE_SECONDS="15",
        PFL_WATCHDOG_SECONDS="1",
    )
    questions = lengthen_test_set(stack.evaluator_home / "test_sets" / "small", 120)
    token = make_participant(stack, "ada@lab.example", "Engines")
    access = {"PFL_SITE": stack.url, "PFL_TOKEN": token}
    stack.kill_process("worker")
    pfl("submit", trained / "fedavg", "--track", "track-1", "--title", "Interrupted", environment=access)
    store = stack.home / "store"
    store.rename(stack.home / "away")
    stack.start_process("worker")

    retried = wait_for(stack, token, lambda run: run["attempt"] > 1, 120)
    assert retried["state"] not in FINAL
    (stack.home / "away").rename(store)

    wait_for(stack, token, lambda run: run["step"] == "scoring" and 0 < run["done"] < questions, 120)
    stack.kill_process("worker")
    interrupted = the_run(stack, token)
    assert interrupted["state"] == "running"
    stack.start_process("worker")

    run = wait_for(stack, token, lambda run: run["state"] in FINAL, 180)
    assert run["state"] == "scored", run["problems"]
    time.sleep(3)  # a second finish, if there were one, would arrive now
    counted = stack.manage(
        *("shell", "--no-imports", "-v", "0", "-c"),
        "from portal.evaluation.models import Evaluation, StepReport;"
        "from portal.submissions.models import Submission;"
        "print(Evaluation.objects.filter(state='passed').count(),"
        " StepReport.objects.filter(step='scoring', outcome='passed').count(),"
        " Submission.objects.filter(refunded_at__isnull=False).count())",
    )
    assert counted == "1 1 0"
