"""A worker of an earlier version takes runs of both tracks from this version's site to a score, and the reverse.

Either way, the test set is one that the earlier version made, as nobody makes it again for an upgrade. The earlier
version's code comes from git. `EARLIER` is the commit of the last release; set it with each release.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.demo.stack import Stack
from tests.e2e.conftest import SIZES, make_participant, pfl, train_privately
from tests.starter_kit.commands.pfl import PFL

ROOT = Path(__file__).resolve().parents[2]
EARLIER = "8845f6ebd9ad2dfbca5323e7f6f182672c122955"

pytestmark = pytest.mark.slow


def search_path(code: Path) -> str:
    """What PYTHONPATH says for a process that runs the code in this folder."""
    return f"{code / 'platform'}:{code}"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the earlier version's code."""
    archive = subprocess.run(
        ["git", "archive", EARLIER, "evaluator", "platform", "starter_kit"],
        cwd=ROOT, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    if archive.returncode:
        pytest.skip(f"this clone doesn't have the commit {EARLIER}: fetch its whole history")
    folder = tmp_path_factory.mktemp("earlier")
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True, timeout=120)
    return folder


def assert_runs(module: str, code: Path, stack: Stack) -> None:
    """Check that a process with the stack's environment finds the module in this folder."""
    asked = subprocess.run(
        [sys.executable, "-c", f"import {module}; print({module}.__file__)"],
        env=stack.environment, cwd=stack.home, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert Path(asked.stdout.strip()).is_relative_to(code)


def replace_test_set(stack: Stack, code: Path, folder: Path) -> None:
    """Give the worker the test set that this code makes of the same documents."""
    subprocess.run(
        [*PFL, "data", "synthetic", str(folder), *SIZES],
        env={**os.environ, "PYTHONPATH": search_path(code)}, cwd=stack.home, check=True, timeout=300,
    )  # fmt: skip
    test_set = stack.evaluator_home / "test_sets" / "small"
    shutil.rmtree(test_set)
    shutil.copytree(folder / "secret", test_set)


@pytest.mark.parametrize("new", ["site", "worker"])
def test_versions_that_follow_each_other_take_a_run_of_each_track_to_a_score(
    new: str, earlier: Path, new_stack: Callable[..., Stack], trained: Path, tmp_path: Path
) -> None:
    site_code, worker_code = (ROOT, earlier) if new == "site" else (earlier, ROOT)
    stack = new_stack(PYTHONPATH=search_path(site_code))
    assert_runs("docvqa_site", site_code, stack)
    stack.stop_process("worker")
    stack.environment["PYTHONPATH"] = search_path(worker_code)
    assert_runs("evaluator", worker_code, stack)
    replace_test_set(stack, earlier, tmp_path / "data")
    stack.start_process("worker")
    access = {
        "PFL_SITE": stack.url,
        "PFL_TOKEN": make_participant(stack, "ada@lab.example", "Engines"),
        "PFL_KEY": str(tmp_path / "team.pem"),
    }
    private = train_privately(trained, tmp_path / "private", access)
    proof = tmp_path / "proof.md"
    proof.write_text("Because the noise is large enough.")
    described = ["--description", "Noise.", "--proof", proof]
    for run, track, more in ((trained / "fedavg", "track-1", []), (private, "track-2", described)):
        printed = pfl("submit", run, "--track", track, "--title", track, *more, "--wait", environment=access)
        assert "scored, ANLS" in printed
        assert "#1 of 1" in printed
