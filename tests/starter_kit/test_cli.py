"""The `pfl` command as a shell sees it: output, exit status, no tracebacks."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.accounting import pld
from evaluator.accounting.mechanisms import PoissonGaussian

PFL = [sys.executable, "-c", "from starter_kit.cli import main; main()"]
QUICK = ["--set", "rounds=1", "--set", "local.max_steps=1", "--set", "max_input_tokens=32"]


def pfl(*arguments: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [*PFL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    pfl("train", "fl-provider-dp", "--data", data, "--base", base, "--out", out, *QUICK)
    return out


def test_the_command_starts_without_loading_torch() -> None:
    code = (
        "import sys, starter_kit.cli; "
        "sys.exit(bool({'torch', 'transformers', 'scipy', 'dp_accounting'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_help_lists_the_commands() -> None:
    listed = pfl("--help").stdout
    assert all(name in listed for name in ("data", "base", "train", "privacy", "evaluate", "check", "submit"))


def test_a_trained_run_passes_the_checks_of_both_tracks(run: Path, base: Path) -> None:
    first = pfl("check", run, "--base", base)
    assert first.stdout.splitlines()[0] == "validate: passed"
    second = pfl("check", run, "--base", base, "--track", "track-2").stdout
    assert "accounting: passed" in second
    assert "within the budget of 8" in second


def test_a_run_over_the_budget_does_not_pass(run: Path, base: Path) -> None:
    assert (
        "ABOVE" in pfl("check", run, "--base", base, "--track", "track-2", "--budget", "4", status=2).stdout
    )


def test_the_checks_name_everything_that_is_wrong(run: Path, base: Path, tmp_path: Path) -> None:
    for name in ("model.safetensors", "training_record.jsonl"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:-100])
    (tmp_path / "communication_log.csv").write_text("round,from,to,bytes\n")
    refused = pfl("check", tmp_path, "--base", base, "--track", "track-2", status=2).stderr
    for code in ("E_CHECKPOINT_OFFSETS", "E_LOG_COLUMNS", "E_RECORD_CHECKPOINT"):
        assert code in refused


def test_a_checkpoint_or_its_folder_is_evaluated(run: Path, base: Path, data: Path) -> None:
    common = ["--base", base, "--data", data]
    by_folder = pfl("evaluate", run, *common).stdout
    assert "ANLS" in by_folder
    assert "12 questions (valid)" in by_folder
    assert pfl("evaluate", run / "model.safetensors", *common).stdout == by_folder


def test_epsilon_of_options_and_of_a_record_is_the_official_one(run: Path) -> None:
    expected = pld.epsilon([PoissonGaussian(0.1, 1.0, 20)], 1e-5)
    options = ["--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "20"]
    assert f"{expected:.6f}" in pfl("privacy", "epsilon", *options).stdout
    assert "7.99" in pfl("privacy", "epsilon", run / "training_record.jsonl").stdout


def test_noise_and_epsilon_are_inverse() -> None:
    sigma = float(pfl("privacy", "noise", "4", "--sampling-rate", "0.1", "--rounds", "20").stdout)
    assert 3.99 < pld.epsilon([PoissonGaussian(0.1, sigma, 20)], 1e-5) <= 4.0001


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
        (["privacy", "epsilon"], "E_CONFIGURATION"),
        (["privacy", "epsilon", "--noise-multiplier", "1", "--sampling-rate", "2"], "E_CONFIGURATION"),
        (["privacy", "noise", "0"], "E_CONFIGURATION"),
        (["submit", "x", "--track", "track-1", "--title", "x"], "E_CONFIGURATION"),
        (["check", "x", "--base", "x", "--track", "track-3"], "E_CONFIGURATION"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_cannot_be_done_is_told_with_a_code(arguments: list[str], code: str, tmp_path: Path) -> None:
    refused = subprocess.run(
        [*PFL, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert refused.returncode == 2
    assert code in refused.stderr
    assert "Traceback" not in refused.stderr
