"""The `pfl` command as a shell sees it: output, exit status, no tracebacks."""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PFL = [sys.executable, "-c", "from starter_kit.cli import main; main()"]
QUICK = ["--set", "rounds=1", "--set", "local.max_steps=1", "--set", "max_input_tokens=32"]


def pfl(*arguments: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [*PFL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def check(run: Path, base: Path, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """`pfl check` by the rules of track 2, but for the pocket data's three clients."""
    return pfl(
        *("check", run, "--base", base, "--track", "track-2", "--clients", "3", *options), status=status
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    pfl("train", "fl-provider-dp", "--data", data, "--base", base, "--out", out, *QUICK)
    return out


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory, run: Path, base: Path, data: Path) -> Path:
    """A copy of the run that was evaluated; `told` is what that printed."""
    folder = shutil.copytree(run, tmp_path_factory.mktemp("scored") / "scored")
    told = pfl("evaluate", folder, "--base", base, "--data", data).stdout
    (folder / "told").write_text(told)
    return folder


def test_the_command_starts_without_loading_torch() -> None:
    code = (
        "import sys, starter_kit.cli; "
        "sys.exit(bool({'torch', 'transformers', 'scipy', 'dp_accounting'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_help_lists_the_commands() -> None:
    listed = pfl("--help").stdout
    commands = (
        *("data", "base", "key", "token", "methods", "new", "train", "privacy", "evaluate"),
        *("compare", "report", "tensorboard", "check", "convert", "submit"),
    )
    assert all(re.search(rf"^\W+{name} ", listed, re.MULTILINE) for name in commands)


def test_the_methods_are_listed() -> None:
    listed = pfl("methods").stdout
    assert "fl-provider-dp" in listed
    assert "arXiv:1602.05629" in listed
    assert "pfl train CONFIG" in listed


def test_a_trained_run_passes_the_checks_of_both_tracks(run: Path, base: Path) -> None:
    first = pfl("check", run, "--base", base)
    line = first.stdout.splitlines()[0]
    changed, tensors = map(int, re.findall(r"\d+", line))
    assert line == f"validate: passed, {changed} of {tensors} tensors differ from the base weights"
    assert 0 < changed < tensors
    second = check(run, base).stdout
    assert "accounting: passed" in second
    assert "within the budget of 8" in second
    assert "no run token, so the run can't be submitted" in second
    assert "is for the site to check" in second


def test_a_run_that_its_budget_ends_early_says_so(tmp_path: Path, base: Path, data: Path) -> None:
    common = ["train", "fl-provider-dp", "--data", str(data), "--base", str(base), *QUICK]
    common += ["--set", "rounds=4", "--set", "noise_multiplier=1"]
    assert "Fewer rounds than the 4 of the settings" in pfl(*common, "--out", tmp_path / "early").stdout
    whole = pfl(*common, "--set", "target_epsilon=100", "--out", tmp_path / "whole").stdout
    assert "4 rounds" in whole
    assert "Fewer rounds" not in whole


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
    assert {"C1", "C2", "C3", "C4", "C5", "C6", "C8", "C10"} <= set(rows)
    assert all("passed" in row or "not applicable" in row for row in rows.values()), rows
    assert 7.9 < float(rows["C1"].split()[-1]) <= 8


def test_the_tracks_sampling_rule_can_be_named(run: Path, base: Path) -> None:
    product = check(run, base, "--sampling-rule", "product").stdout
    assert "accounting: passed" in product


def test_a_run_over_the_budget_does_not_pass(run: Path, base: Path) -> None:
    told = check(run, base, "--budget", "4", status=2).stdout
    assert "ABOVE" in told
    assert "accounting: passed" not in told


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


def test_a_checkpoint_or_its_folder_is_evaluated(run: Path, scored: Path, base: Path, data: Path) -> None:
    by_folder = (scored / "told").read_text()
    assert "ANLS" in by_folder
    assert "12 questions (valid)" in by_folder
    by_file = pfl("evaluate", run / "model.safetensors", "--base", base, "--data", data)
    assert by_file.stdout == by_folder


def test_runs_are_compared_reported_and_shown_in_tensorboard(run: Path, scored: Path, tmp_path: Path) -> None:
    score = (scored / "told").read_text().split()[1].rstrip(",")
    markdown = pfl("compare", run, scored, "--format", "markdown", "--by-anls").stdout
    assert re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|", markdown, re.MULTILINE)[1:] == [
        ("scored", score),
        ("run", "–"),
    ]
    assert score in (scored / "report.html").read_text()
    (scored / "report.html").unlink()
    assert "report.html" in pfl("report", scored).stdout
    assert score in (scored / "report.html").read_text()
    pfl("tensorboard", scored, "--log-dir", tmp_path / "events")
    assert list((tmp_path / "events").iterdir())
    assert "summary.json" in pfl("compare", tmp_path, status=2).stderr


def test_scores_of_a_folder_without_a_summary_are_told_and_kept_nowhere(
    run: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    shutil.copy(run / "model.safetensors", tmp_path)
    assert "ANLS" in pfl("evaluate", tmp_path, "--base", base, "--data", data).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_new_method_is_written_trained_and_kept_with_its_run(
    tmp_path: Path, base: Path, data: Path
) -> None:
    told = pfl("new", "clever_idea", "--out", tmp_path).stdout
    assert "clever_idea.yaml --data" in told.replace("\n", "")
    trained = pfl(
        *("train", tmp_path / "clever_idea.yaml", "--data", data, "--base", base, "--out", tmp_path / "run"),
        *QUICK,
    )
    assert "trained with clever_idea.py, 1 round," in trained.stdout
    assert f"{tmp_path / 'run' / 'report.html'} shows it" in trained.stdout
    assert f"pfl evaluate {tmp_path / 'run'}" in trained.stdout
    assert (tmp_path / "run" / "clever_idea.py").read_bytes() == (tmp_path / "clever_idea.py").read_bytes()
    assert "nothing is overwritten" in pfl("new", "clever_idea", "--out", tmp_path, status=2).stderr


def test_a_new_private_method_comes_with_its_proof(tmp_path: Path) -> None:
    assert "clever_idea_proof.md says" in pfl("new", "clever_idea", "--private", "--out", tmp_path).stdout
    assert "Prove it" not in pfl("new", "other_idea", "--out", tmp_path).stdout


def test_a_run_that_is_interrupted_says_how_it_goes_on_and_is_not_lost(
    tmp_path: Path, base: Path, data: Path
) -> None:
    train = ["train", "fedavg", "--data", str(data), "--base", str(base), "--out", str(tmp_path / "run")]
    train += [*QUICK, "--set", "rounds=60"]
    metrics = tmp_path / "run.unfinished" / "metrics.jsonl"
    running = subprocess.Popen([*PFL, *train], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    waited_until = time.monotonic() + 100
    while not (metrics.is_file() and metrics.read_text().count("\n")) and time.monotonic() < waited_until:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in told
    rounds = metrics.read_text().count("\n")
    assert 0 < rounds < 60
    assert f"--resume goes on after round {rounds}" in told
    rejected = pfl(*train, status=2).stderr
    assert "E_RUN_FOLDER" in rejected
    assert "Add --resume to go on with it" in rejected
    assert metrics.read_text().count("\n") == rounds
    assert "60 rounds" in pfl(*train, "--resume").stdout


def test_the_folder_above_the_data_is_not_taken_for_it(tmp_path: Path, base: Path, data: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "public").symlink_to(data)
    rejected = pfl("train", "fedavg", "--data", tmp_path / "data", "--base", base, "--out", "x", status=2)
    assert f"next: Say --data {tmp_path / 'data' / 'public'}" in rejected.stderr


@pytest.mark.parametrize("name", ["nothing", "nothing/model.safetensors"])
def test_a_checkpoint_that_is_not_there_is_told(tmp_path: Path, base: Path, data: Path, name: str) -> None:
    rejected = pfl("evaluate", tmp_path / name, "--base", base, "--data", data, status=2).stderr
    assert "E_ARTIFACT_MISSING" in rejected
    assert str(tmp_path / name) in rejected


def test_a_split_that_there_is_not_is_told_with_those_that_there_are(
    run: Path, base: Path, data: Path
) -> None:
    rejected = pfl("evaluate", run, "--base", base, "--data", data, "--split", "tset", status=2).stderr
    assert all(name in rejected for name in ("tset", "train", "valid", "test"))


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


OFFICIAL = """
model_name: VT5
device: cpu
training_parameters: {lr: 2e-4, batch_size: 10}
fl_parameters: {sample_clients: 2, total_clients: 10, num_rounds: 50, iterations_per_fl_round: 1}
dp_parameters: {providers_per_fl_round: 1, sensitivity: 0.5, noise_multiplier: 1.182}
"""


def test_a_config_of_the_official_kit_is_trained_with_and_every_key_is_told(
    tmp_path: Path, base: Path, data: Path
) -> None:
    (tmp_path / "VT5.yml").write_text(OFFICIAL)
    common = ["--data", data, "--base", base, "--set", "max_input_tokens=32"]
    result = pfl(
        *("train", "-m", tmp_path / "VT5.yml", "-d", "PFL-DocVQA", "--flower", "--use_dp"),
        *("--num_rounds", "1", "-bs", "4", *common, "--out", tmp_path / "run"),
    )
    for note in (
        "fl_parameters.sample_clients: 2 -> clients_per_round: 2",
        "--num_rounds: 1 -> rounds: 1",
        "--batch-size: 4 -> local.batch_size: 4",
        "dp_parameters.sensitivity: 0.5 -> clip_norm: 0.5",
    ):
        assert note in result.stderr.splitlines()
    assert "method: fl-provider-dp" in result.stderr
    assert "ε = " in result.stdout
    settings = (tmp_path / "run" / "settings.yaml").read_text()
    assert "experiment: VT5_PFL-DocVQA_dp\n" in settings


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


def test_base_weights_are_never_overwritten(base: Path) -> None:
    before = {path: path.read_bytes() for path in base.iterdir()}
    assert "E_RUN_FOLDER" in pfl("base", "create", base, status=2).stderr
    assert {path: path.read_bytes() for path in base.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["train", "nobody", "--data", "x", "--base", "x", "--out", "x"], "E_CONFIGURATION"),
        (["train", "fedavg", "--data", "x", "--base", "x", "--out", "x"], "E_REFERENCE_FORMAT"),
        (
            ["train", "fedavg", "--data", "x", "--base", "x", "--out", "x", "--set", "round=3"],
            "E_CONFIGURATION",
        ),
        (["submit", "x", "--track", "track-1", "--title", "x"], "E_CONFIGURATION"),
        (["check", "x", "--base", "x", "--track", "track-3"], "E_CONFIGURATION"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_cannot_be_done_is_told_with_a_code(arguments: list[str], code: str, tmp_path: Path) -> None:
    rejected = subprocess.run(
        [*PFL, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert rejected.returncode == 2
    assert code in rejected.stderr
    assert "Traceback" not in rejected.stderr
