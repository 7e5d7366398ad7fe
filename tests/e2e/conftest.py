"""A whole site with a real worker, and the files of a small training run, for the end-to-end tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import create_reference
from portal.standalone.stack import Stack

PFL = Path(sys.executable).parent / "pfl"
PASSWORD = "correct-horse-battery-staple"


def pfl(*arguments: str | Path, **environment: str) -> str:
    """Run one `pfl` command and return what it printed; its failure fails the test with its message."""
    result = subprocess.run(
        [str(PFL), *map(str, arguments)],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"pfl {' '.join(map(str, arguments))}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data/`, `base/`, and the runs `fedavg/` and `private/` of a minute model, trained for real."""
    folder = tmp_path_factory.mktemp("trained")
    sizes = ["--train-providers", "30", "--train-pages", "60", "--valid-pages", "10", "--test-pages", "20"]
    pfl("data", "synthetic", folder / "data", *sizes)
    public = folder / "data" / "public"
    texts = [" ".join(page.words) for page in Dataset(public, "train").pages.values()]
    create_reference(
        folder / "base", texts, seed=1, vocab_size=400
    )  # not pre-trained: quality plays no part here
    common = ["--data", public, "--base", folder / "base"]
    pfl("train", "fedavg", *common, "--out", folder / "fedavg", "--set", "rounds=1")
    pfl(
        "train",
        "fl-provider-dp",
        *common,
        "--out",
        folder / "private",
        "--set",
        "target_epsilon=8",
        "--set",
        "rounds=1",
    )
    return folder


@pytest.fixture
def new_stack(tmp_path: Path, trained: Path) -> Iterator[Callable[..., Stack]]:
    """Starts sites that hold the small run's base weights and test set; `variables` name other back ends."""
    stacks = []

    def start(**variables: str) -> Stack:
        stack = Stack(tmp_path / f"site-{len(stacks)}", variables=variables)
        stacks.append(stack)
        shutil.copytree(trained / "base", stack.evaluator_home / "references" / "vt5-small")
        shutil.copytree(trained / "data" / "secret", stack.evaluator_home / "test_sets" / "small")
        stack.start()
        overrides = ["*.reference=vt5-small", "*.test_set=small", "track-1.anls_threshold=0"]
        stack.manage("load_tracks", *(word for override in overrides for word in ("--set", override)))
        return stack

    yield start
    for stack in stacks:
        stack.stop()


def make_participant(stack: Stack, email: str, team: str) -> str:
    """A verified user with a team of their own, as an organizer would make them; returns an API token."""
    stack.manage(
        "create_user", email, "--name", email.split("@")[0], "--password-env", "PASSWORD", PASSWORD=PASSWORD
    )
    stack.manage("create_team", team, "--owner", email)
    return stack.manage("create_token", email, "--label", "test")
