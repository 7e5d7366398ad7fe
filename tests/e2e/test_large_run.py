"""A run whose messages are too large to attach: the site draws rounds of its index and folds what the team opens."""

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.demo.stack import Stack
from tests.e2e.conftest import make_participant, pfl

pytestmark = pytest.mark.slow


def test_a_large_run_is_counted_by_the_rounds_that_the_site_draws(
    new_stack: Callable[..., Stack], trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    where = ["--data", trained / "data" / "public", "--base", trained / "base", "--out", run]
    pfl("train", "fedavg", *where, "--set", "rounds=6")
    stack = new_stack(PFL_WHOLE_MESSAGES_BYTES="1000")
    token = make_participant(stack, "mary@lab.example", "Bytes")
    printed = pfl(
        "submit",
        *(run, "--track", "track-1", "--title", "Large", "--wait"),
        environment={"PFL_SITE": stack.url, "PFL_TOKEN": token},
    )
    assert "opening rounds 1, 2, 3, 4, 5, 6 of 6, which the site has drawn" in printed
    assert "#1 of 1" in printed
    board = requests.get(f"{stack.url}/leaderboard/track-1.json", timeout=30).json()
    (row,) = board["boards"][0]["rows"]
    results = row["results"]
    # It draws as many as fit, which are all here.
    assert (results["counting"], results["rounds_folded"], results["log_rounds"]) == ("counted", 6, 6)
