"""`pfl check`: the workers' checks on a participant's own disk."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.starter_kit.commands.pfl import Ended, pfl


def check(run: Path, base: Path, *options: str, status: int = 0) -> Ended:
    """`pfl check` by the rules of track 2, but for the pocket data's three clients."""
    rules = ["--track", "track-2", "--clients", "3"]
    return pfl("check", run, "--base", base, *rules, *options, status=status)


def test_a_trained_run_passes_the_checks_of_both_tracks(run: Path, base: Path) -> None:
    first = pfl("check", run, "--base", base)
    source, line = first.stdout.splitlines()[:2]
    assert "the competition's defaults" in source
    changed, tensors = map(int, re.findall(r"\d+", line))
    assert line == f"validate: passed, {changed} of {tensors} tensors differ from the base weights"
    assert 0 < changed < tensors
    second = check(run, base).stdout
    assert "accounting: passed" in second
    assert "within the budget of 8" in second
    assert "no run token, so you can't submit this run" in second
    assert "The site also checks whether the run token and the key belong to your team" in second


def test_what_the_track_holds_fixed_must_be_as_in_the_base_weights(run: Path, base: Path) -> None:
    assert pfl("check", run, "--base", base, "--trainable", "*.bias", "--trainable", "*.weight").stdout
    rejected = pfl(
        "check", run, "--base", base, "--trainable", "*.bias", "--trainable", "nothing.*", status=2
    )
    assert "E_CHECKPOINT_FROZEN_TENSOR" in rejected.stdout + rejected.stderr
    assert "*.bias, nothing.*" in rejected.stdout + rejected.stderr


def test_every_check_is_listed_with_its_status_and_what_it_found(run: Path, base: Path) -> None:
    listed = check(run, base).stdout.splitlines()
    rows = {line.split()[0]: line for line in listed if line.startswith("  ")}
    assert {
        "record.budget",
        "record.rounds",
        "record.models",
        "record.bytes",
        "record.clients",
        "record.providers",
        "record.noise_size",
        "record.tensors",
    } <= set(rows)
    good = ("passed", "no power", "not applicable", "not testable before the upload: ")
    assert all(any(status in row for status in good) for row in rows.values()), rows
    assert 7.9 < float(rows["record.budget"].split()[-1]) <= 8


def test_the_tracks_sampling_rule_can_be_named(run: Path, base: Path) -> None:
    product = check(run, base, "--sampling-rule", "product").stdout
    assert "accounting: passed" in product


def test_a_run_over_the_budget_does_not_pass(run: Path, base: Path) -> None:
    printed = check(run, base, "--budget", "4", status=2).stdout
    assert "ABOVE" in printed
    assert "accounting: passed" not in printed


def test_a_missing_file_is_named_by_its_path(run: Path, base: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "communication_log.csv").unlink()
    rejected = pfl("check", tmp_path / "run", "--base", base, status=2)
    assert str(tmp_path / "run" / "communication_log.csv") in rejected.stderr.replace("\n", "")


def test_the_checks_name_everything_that_is_wrong(run: Path, base: Path, tmp_path: Path) -> None:
    for name in ("model.safetensors", "training_record.jsonl", "training_annex.jsonl"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:-100])
    (tmp_path / "communication_log.csv").write_text("round,from,to,bytes\n")
    rejected = check(tmp_path, base, status=2)
    for code in ("E_CHECKPOINT_OFFSETS", "E_LOG_COLUMNS"):
        assert code in rejected.stderr
    for step in ("validate", "communication", "accounting"):
        assert f"{step}: rejected" in rejected.stdout


def test_a_run_that_is_not_there_is_not_checked(run: Path, base: Path, tmp_path: Path) -> None:
    rejected = pfl("check", tmp_path / "nothing", "--base", base, status=2)
    assert "no such folder" in rejected.stderr
    assert rejected.stdout == ""
    shutil.copytree(run, tmp_path / "broken.unfinished")
    rejected = pfl("check", tmp_path / "broken", "--base", base, status=2)
    assert "--resume" in rejected.stderr


def test_a_run_without_a_record_is_not_for_track_2(run: Path, base: Path, tmp_path: Path) -> None:
    shutil.copy(run / "model.safetensors", tmp_path)
    rejected = check(tmp_path, base, status=2).stderr
    assert "E_ARTIFACT_MISSING" in rejected
    assert "--track track-1" in rejected


@pytest.mark.parametrize(
    ("content", "code"), [(None, "E_ARTIFACT_MISSING"), (b"no tensors", "E_REFERENCE_FORMAT")]
)
def test_a_check_against_a_folder_without_base_weights_is_rejected(
    run: Path, tmp_path: Path, content: bytes | None, code: str
) -> None:
    if content is not None:
        (tmp_path / "model.safetensors").write_bytes(content)
    rejected = pfl("check", run, "--base", tmp_path, status=2)
    assert code in rejected.stderr
    assert str(tmp_path / "model.safetensors") in rejected.stderr


def test_pickled_base_weights_are_converted_once_and_used(run: Path, base: Path, tmp_path: Path) -> None:
    published = shutil.copytree(base, tmp_path / "published")
    torch.save(load_file(published / "model.safetensors"), published / "pytorch_model.bin")
    (published / "model.safetensors").unlink()
    first = pfl("check", run, "--base", published)
    assert "converting them once" in first.stderr
    assert "validate: passed" in first.stdout
    assert "converting them" not in pfl("check", run, "--base", published).stderr
