"""`pfl new`: what it writes is trained with, and kept with the run."""

import shlex
from pathlib import Path

from tests.starter_kit.commands.pfl import QUICK, pfl


def test_a_new_method_is_written_trained_and_kept_with_its_run(
    tmp_path: Path, base: Path, data: Path
) -> None:
    printed = pfl("new", "clever_idea", "--out", tmp_path).stdout
    assert "clever_idea.yaml --data" in printed.replace("\n", "")
    trained = pfl(
        *("train", tmp_path / "clever_idea.yaml", "--data", data, "--base", base, "--out", tmp_path / "run"),
        *QUICK,
    )
    assert "trained with clever_idea, 1 round," in trained.stdout
    assert f"Report: {tmp_path / 'run' / 'report.html'}" in trained.stdout
    command = trained.stdout.rpartition("To score the run: pfl ")[2].partition("\n")[0]
    assert "ANLS" in pfl(*shlex.split(command)).stdout
    assert (tmp_path / "run" / "clever_idea.py").read_bytes() == (tmp_path / "clever_idea.py").read_bytes()
    assert "nothing is overwritten" in pfl("new", "clever_idea", "--out", tmp_path, status=2).stderr


def test_a_method_that_raises_while_it_trains_ends_with_its_line(
    tmp_path: Path, base: Path, data: Path
) -> None:
    pfl("new", "clever_idea", "--out", tmp_path)
    file = tmp_path / "clever_idea.py"
    before, name, after = file.read_text().partition("    def client_update(")
    signature, rest = after.split(":\n", 1)
    lines = [*(before + name + signature + ":").splitlines(), "        raise KeyError(task.round)"]
    file.write_text("\n".join([*lines, rest]))
    rejected = pfl(
        *("train", tmp_path / "clever_idea.yaml", "--data", data, "--base", base, "--out", tmp_path / "run"),
        *QUICK,
        status=2,
    ).stderr.replace("\n", "")
    assert "E_CONFIGURATION" in rejected
    assert f"{file}, line {len(lines)}" in rejected
    assert "KeyError: 1" in rejected


def test_a_new_private_method_comes_with_its_proof(tmp_path: Path) -> None:
    assert (
        "clever_idea_proof.md is an outline"
        in pfl("new", "clever_idea", "--private", "--out", tmp_path).stdout
    )
    assert "Prove it" not in pfl("new", "other_idea", "--out", tmp_path).stdout


def test_a_name_may_have_hyphens_as_configs_do(tmp_path: Path) -> None:
    assert "my_avg.yaml --data" in pfl("new", "my-avg", "--out", tmp_path).stdout.replace("\n", "")
    assert {path.name for path in tmp_path.iterdir()} == {"my_avg.py", "my_avg.yaml", "test_my_avg.py"}


def test_kinds_of_files_are_started_one_at_a_time(tmp_path: Path) -> None:
    printed = pfl("new", "clever_idea", "--codec", "--private", "--out", tmp_path, status=2).stderr
    assert "--private is for methods" in printed
    assert list(tmp_path.iterdir()) == []
