"""`pfl train`: from a config to a run folder, also after an interruption."""

import signal
import time
from pathlib import Path

import yaml

from starter_kit.commands.main import main
from tests.services.forked import Forked
from tests.starter_kit.commands.pfl import QUICK, pfl


def test_a_run_that_its_budget_ends_early_says_so(tmp_path: Path, base: Path, data: Path) -> None:
    common = ["train", "fl-provider-dp", "--data", str(data), "--base", str(base), *QUICK]
    common += ["--set", "rounds=4", "--set", "noise_multiplier=1"]
    ended = pfl(*common, "--set", "target_epsilon=3", "--out", tmp_path / "early")
    assert "add --set server_learning_rate=0.7" in ended.stderr
    early = ended.stdout
    assert "of 4 rounds: another round would exceed" in early
    whole = pfl(*common, "--set", "target_epsilon=100", "--out", tmp_path / "whole").stdout
    assert "4 rounds" in whole
    assert "another round would exceed" not in whole


def test_a_run_without_a_seed_draws_one_by_which_it_can_be_repeated(
    tmp_path: Path, base: Path, data: Path
) -> None:
    def trained(name: str, *changes: object) -> tuple[int, bytes]:
        where = ("--data", data, "--base", base, "--out", tmp_path / name)
        pfl("train", "fedavg", *where, *QUICK, *changes)
        settings = yaml.safe_load((tmp_path / name / "settings.yaml").read_text())
        return settings["seed"], (tmp_path / name / "model.safetensors").read_bytes()

    first, second = trained("first"), trained("second")
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert trained("again", "--set", f"seed={first[0]}") == first


def test_an_interrupted_run_reports_how_to_resume_it_and_is_not_lost(
    tmp_path: Path, base: Path, data: Path
) -> None:
    train = ["train", "fedavg", "--data", str(data), "--base", str(base), "--out", str(tmp_path / "run")]
    train += [*QUICK, "--set", "rounds=60"]
    metrics = tmp_path / "run.unfinished" / "metrics.jsonl"
    printed = tmp_path / "printed"
    running = Forked(main, ["pfl", *train], stdout=printed, stderr=printed)
    waited_until = time.monotonic() + 600
    while not (metrics.is_file() and metrics.read_text().count("\n")) and time.monotonic() < waited_until:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    assert running.wait(600) == 130
    errors = printed.read_text()
    assert "Traceback" not in errors
    rounds = metrics.read_text().count("\n")
    assert 0 < rounds < 60
    assert f"--resume continues after round {rounds}" in errors
    rejected = pfl(*train, status=2).stderr
    assert "E_RUN_FOLDER" in rejected
    assert "Add --resume to continue the run" in rejected
    assert f"found: a run with {rounds} round" in rejected
    assert metrics.read_text().count("\n") == rounds
    assert "60 rounds" in pfl(*train, "--resume").stdout


def test_secure_aggregation_is_reported_as_not_audited(tmp_path: Path, base: Path, data: Path) -> None:
    common = ["--data", str(data), "--base", str(base), *QUICK]
    assert "not audited" in pfl("train", "secure-aggregation", *common, "--out", tmp_path / "run").stderr


def test_the_folder_above_the_data_is_not_taken_for_it(tmp_path: Path, base: Path, data: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "public").symlink_to(data)
    rejected = pfl("train", "fedavg", "--data", tmp_path / "data", "--base", base, "--out", "x", status=2)
    assert f"next: Use --data {tmp_path / 'data' / 'public'}" in rejected.stderr
    assert "secret test set" not in rejected.stderr


OFFICIAL = """
model_name: VT5
device: cpu
training_parameters: {lr: 2e-4, batch_size: 10}
fl_parameters: {sample_clients: 2, total_clients: 10, num_rounds: 50, iterations_per_fl_round: 1}
dp_parameters: {providers_per_fl_round: 1, sensitivity: 0.5, noise_multiplier: 1.182}
"""


def test_a_config_of_the_official_kit_is_trained_with_and_every_key_is_listed(
    tmp_path: Path, base: Path, data: Path
) -> None:
    (tmp_path / "VT5.yml").write_text(OFFICIAL)
    common = ["--data", data, "--base", base, "--set", "max_input_tokens=32"]
    result = pfl(
        *("train", "-m", tmp_path / "VT5.yml", "-d", "PFL-DocVQA", "--flower", "--use_dp"),
        *("--num_rounds", "1", "-bs", "4", *common, "--out", tmp_path / "run"),
    )
    for note in (
        "fl_parameters.sample_clients: 2 -> sampling.clients_per_round: 2",
        "--num_rounds: 1 -> rounds: 1",
        "--batch-size: 4 -> local.batch_size: 4",
        "dp_parameters.sensitivity: 0.5 -> clip_norm: 0.5",
    ):
        assert note in result.stderr.splitlines()
    assert "method: fl-provider-dp" in result.stderr
    assert "ε = " in result.stdout
    settings = (tmp_path / "run" / "settings.yaml").read_text()
    assert "experiment: VT5_PFL-DocVQA_dp\n" in settings
