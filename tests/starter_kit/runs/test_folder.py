"""Run folders with a sharded checkpoint, as the `pfl` command meets them."""

import os
import resource
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from docvqa_site.uploads.models import Upload, UploadState
from evaluator.checkpoints.sharding import joined_sha256
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind
from starter_kit.runs.folder import RunFolder
from tests.evaluator.checkpoints.sharded import INDEX, save_shards, split
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import PFL, TIMEOUT_S, run_pfl

LOG = "federated_round,sender,receiver,amount_of_bytes\n"


@pytest.fixture
def run(tmp_path: Path, base: Path) -> Path:
    """A run of no round, its checkpoint in three shards."""
    folder = tmp_path / "run"
    save_shards(folder, split(load_file(base / "model.safetensors"), 3))
    (folder / "communication_log.csv").write_text(LOG)
    return folder


def pfl(*arguments: str | Path, status: int = 0) -> str:
    """Output and errors of a command."""
    ended = run_pfl(*arguments)
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def rejection(folder: Path) -> ProblemError:
    with pytest.raises(ProblemError) as rejected:
        RunFolder(folder).files()
    return rejected.value


def test_the_checks_join_the_shards_and_say_so_once(run: Path, base: Path) -> None:
    first = pfl("check", run, "--base", base)
    assert "joining 3 shards into model.safetensors" in first
    assert "validate: passed" in first
    assert sha256_of(run / "model.safetensors") == joined_sha256(run / INDEX)
    assert "joining" not in pfl("check", run, "--base", base)


def test_a_sharded_run_is_evaluated(run: Path, base: Path, data: Path) -> None:
    output = pfl("evaluate", run, "--base", base, "--data", data)
    assert "joining 3 shards" in output
    assert "12 questions (valid)" in output


def test_a_sharded_run_is_submitted_as_one_file(run: Path, site: LiveSite, token: str, settings: Any) -> None:
    settings.UPLOAD_PART_SIZE_BYTES = 1_000_000
    pfl(
        "submit",
        run,
        "--track",
        "track-1",
        "--title",
        "Mine",
        "--anyway",
        "--site",
        site.url,
        "--token",
        token,
    )
    completed = Upload.objects.filter(state=UploadState.COMPLETED)
    uploads = {upload.filename: upload.sha256 for upload in completed}
    assert uploads.keys() == {"model.safetensors", "communication_log.csv"}
    assert uploads["model.safetensors"] == joined_sha256(run / INDEX)


def test_asking_for_the_checkpoint_joins_it_and_asking_for_another_file_does_not(run: Path) -> None:
    folder = RunFolder(run)
    folder.file(ArtifactKind.COMMUNICATION_LOG)
    assert not (run / "model.safetensors").exists()
    assert folder.file(ArtifactKind.CHECKPOINT).is_file()


def test_a_missing_shard_is_reported_without_a_traceback(run: Path, base: Path) -> None:
    (run / "model-00002-of-00003.safetensors").unlink()
    output = pfl("check", run, "--base", base, status=2)
    assert "E_CHECKPOINT_SHARD" in output
    assert "model-00002-of-00003.safetensors" in output
    assert not (run / "model.safetensors").exists()


def test_a_folder_without_room_is_reported_and_nothing_is_left_in_it(run: Path, base: Path) -> None:
    before = sorted(run.iterdir())
    ended = subprocess.run(
        [*PFL, "check", run, "--base", base],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert ended.returncode == 2
    assert "E_RUN_FOLDER" in ended.stderr
    assert "Make room" in ended.stderr
    assert sorted(run.iterdir()) == before


def test_a_checkpoint_beside_older_shards_is_the_one(run: Path, base: Path) -> None:
    shutil.copyfile(base / "model.safetensors", run / "model.safetensors")
    assert RunFolder(run).files()[ArtifactKind.CHECKPOINT] == run / "model.safetensors"
    assert sha256_of(run / "model.safetensors") == sha256_of(base / "model.safetensors")


def test_shards_of_a_later_training_are_not_passed_over(run: Path) -> None:
    RunFolder(run).files()
    tensors = load_file(run / "model.safetensors")
    save_shards(run, split({name: tensor + 1 for name, tensor in tensors.items()}, 3))
    later = (run / "model.safetensors").stat().st_mtime + 10
    os.utime(run / INDEX, (later, later))
    assert rejection(run).problem.code is ErrorCode.RUN_FOLDER
    (run / "model.safetensors").unlink()
    RunFolder(run).files()
    assert sha256_of(run / "model.safetensors") == joined_sha256(run / INDEX)


def test_a_copied_folder_whose_files_have_new_times_is_accepted(run: Path) -> None:
    RunFolder(run).files()
    later = (run / "model.safetensors").stat().st_mtime + 10
    os.utime(run / INDEX, (later, later))
    assert ArtifactKind.CHECKPOINT in RunFolder(run).files()
