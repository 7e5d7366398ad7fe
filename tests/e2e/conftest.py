"""A whole site with a real worker, and the files of a small training run, for the end-to-end tests."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from filelock import FileLock

from evaluator.docvqa.dataset import Dataset
from tests.demo.stack import Stack
from tests.starter_kit.commands.pfl import run_pfl

PASSWORD = "correct-horse-battery-staple"
# Of the small data.
SIZES = [
    *("--train-providers", "30", "--train-pages", "60", "--valid-pages", "10", "--test-pages", "20"),
    *("--private", "0"),
]


def pfl(*arguments: object, status: int = 0, environment: Mapping[str, str] = {}) -> str:
    """Run one `pfl` command and return all it printed; another exit status fails the test with its message."""
    ended = run_pfl(*arguments, environment={**os.environ, **environment})
    printed = f"{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == status, f"pfl {' '.join(map(str, arguments))}\n{printed}"
    return printed


def train_privately(trained: Path, out: Path, environment: Mapping[str, str]) -> Path:
    """The folder of a private run on the small data, within a budget of 8."""
    where = ["--data", trained / "data" / "public", "--base", trained / "base", "--out", out]
    pfl("train", "fl-provider-dp", *where, "--set", "rounds=1", environment=environment)
    return out


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder with `data/`, `base/`, and the run `fedavg/` of a minute model, trained for real.

    One for all of pytest's processes; not to be changed.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "trained"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            unfinished = tmp_path_factory.mktemp("unfinished")
            train_openly(unfinished)
            unfinished.rename(folder)
    return folder


def train_openly(folder: Path) -> None:
    # Loads torch, which every process of pytest would do to read this file.
    from tests.tiny_reference import create_reference

    pfl("data", "synthetic", folder / "data", *SIZES)
    public = folder / "data" / "public"
    texts = [" ".join(page.words) for page in Dataset(public, "train").pages.values()]
    # Not pre-trained: quality plays no part here.
    create_reference(folder / "base", texts, seed=1, vocab_size=400)
    where = ["--data", public, "--base", folder / "base", "--out", folder / "fedavg"]
    pfl("train", "fedavg", *where, "--set", "rounds=1")


def start_stack(stack: Stack, trained: Path, *more: str) -> None:
    """Start a site that holds the small run's base weights and test set, with `more` set of its tracks."""
    shutil.copytree(trained / "base", stack.evaluator_home / "references" / "vt5-small")
    shutil.copytree(trained / "data" / "secret", stack.evaluator_home / "test_sets" / "small")
    overrides = ["*.reference=vt5-small", "*.test_set=small", "track-1.anls_threshold=0", *more]
    stack.start(
        ["load_tracks", "--publish", *(word for override in overrides for word in ("--set", override))]
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Iterator[Stack]:
    """A site on the embedded back ends, for the tests of the group "site": each brings teams of its own."""
    stack = Stack(tmp_path_factory.mktemp("site"))
    try:
        start_stack(stack, trained, "track-1.leakage_set=small", "track-1.leakage_split=test")
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def new_stack(tmp_path: Path, trained: Path) -> Iterator[Callable[..., Stack]]:
    """Starts sites of a test's own; `variables` name other back ends."""
    stacks: list[Stack] = []

    def start(**variables: str) -> Stack:
        stack = Stack(tmp_path / f"site-{len(stacks)}", variables=variables)
        stacks.append(stack)
        start_stack(stack, trained)
        return stack

    yield start
    for stack in stacks:
        stack.stop()


def make_participant(stack: Stack, email: str, team: str) -> str:
    """A verified user with a team of their own, as an organizer would make them; returns an API token."""
    name = email.split("@")[0]
    *_, token = stack.manage_all(
        [
            ["create_user", email, "--name", name, "--password-env", "PASSWORD"],
            ["create_team", team, "--owner", email],
            ["create_token", email, "--label", "test"],
        ],
        PASSWORD=PASSWORD,
    )
    return token
