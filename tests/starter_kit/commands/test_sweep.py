"""`pfl sweep`: every combination is trained, scored and listed; private ones only on public data."""

import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from starter_kit.commands.main import app
from starter_kit.settings.configuration import load_settings
from starter_kit.sweeping import trials_of

QUICK = ("--set", "local.max_steps=1", "--set", "max_input_tokens=32", "--set", "rounds=1")


def sweep(config: str, base: Path, data: Path, out: Path, *options: str, status: int = 0) -> Result:
    arguments = ["sweep", config, "--base", str(base), "--data", str(data), "--out", str(out), *options]
    result = CliRunner().invoke(
        app, arguments, env={"COLUMNS": "200", "PFL_KEY": str(out.parent / "key.pem")}
    )
    assert result.exit_code == status, result.output
    return result


def test_all_combinations_are_trained_once_and_listed_with_their_scores(
    base: Path, data: Path, tmp_path: Path
) -> None:
    grid = ("--grid", "local.learning_rate=1e-3,0.1", *QUICK)
    first = sweep("fedavg", base, data, tmp_path / "out", *grid)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"001", "002"}
    assert all(text in first.stdout for text in ("local.learning_rate", "0.001", "0.1", "∞"))
    again = sweep("fedavg", base, data, tmp_path / "out", *grid)
    assert "trained with" in first.stdout
    assert "trained with" not in again.stdout
    others = ("--grid", "local.learning_rate=1e-3,0.2", *QUICK)
    rejected = sweep("fedavg", base, data, tmp_path / "out", *others, status=2)
    assert "E_RUN_FOLDER" in rejected.output
    assert "local.learning_rate=0.2" in rejected.output


def test_the_listed_commands_have_the_settings_of_the_runs(base: Path, data: Path, tmp_path: Path) -> None:
    grid = ("--grid", "lora.rank=2,4", "--grid", "lora.targets=['*.q'],['*.v']", "--list")
    lines = sweep("lora", base, data, tmp_path / "out", *grid, *QUICK).stdout.splitlines()
    trials = trials_of("lora", QUICK[1::2], [grid[1], grid[3]])
    assert len(lines) == len(trials) == 4
    for line, trial in zip(lines, trials, strict=True):
        words = shlex.split(line)
        changes = [word for before, word in pairwise(words) if before == "--set"]
        assert load_settings("lora", changes) == trial.settings
    assert not (tmp_path / "out").exists()


def test_a_private_method_is_rejected_with_what_the_sweep_would_cost(
    base: Path, data: Path, tmp_path: Path
) -> None:
    grid = ("--grid", "local.learning_rate=0.5,1.0", *QUICK)
    rejected = sweep("fl-provider-dp", base, data, tmp_path / "out", *grid, status=2)
    assert "2 private runs, each with ε up to" in rejected.output
    assert "the best of about 2 such runs up to" in rejected.output
    assert not (tmp_path / "out").exists()
    assert (
        len(
            sweep(
                "fl-provider-dp", base, data, tmp_path / "out", *grid, "--public-data", "--list"
            ).stdout.splitlines()
        )
        == 2
    )


@pytest.mark.parametrize("grid", ["rounds", "rounds=", "rounds=[1", "rounds=-1,2", "ruonds=1,2"])
def test_a_grid_that_makes_no_settings_is_rejected_before_anything_is_trained(
    grid: str, base: Path, data: Path, tmp_path: Path
) -> None:
    assert "E_CONFIGURATION" in sweep("fedavg", base, data, tmp_path / "out", "--grid", grid, status=2).output
    assert not (tmp_path / "out").exists()
