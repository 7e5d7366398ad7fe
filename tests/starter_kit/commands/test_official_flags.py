"""The flags of the competition's kit on the command line of `pfl train`."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from starter_kit.commands.main import app
from starter_kit.settings.official_keys import FLAGS

# A folder with neither data nor weights.
NEITHER = str(Path(__file__).parent)
FOLDERS = ["--data", NEITHER, "--base", NEITHER, "--out", "nowhere"]


def train(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["train", *arguments, *FOLDERS])


def test_they_are_mentioned_but_not_listed() -> None:
    listed = CliRunner().invoke(app, ["train", "--help"]).stdout
    assert "competition" in listed
    options = listed.partition("\nOptions:\n")[2]
    assert "--resume" in options
    assert not [flag for flag in FLAGS if flag in options]


def test_each_is_read_and_reported() -> None:
    values = {"--flower": [], "--use_dp": [], "--dataset": ["some"], "--save-dir": ["some"]}
    for flag in FLAGS:
        result = train("fedavg", flag, *values.get(flag, ["1"]))
        assert result.exit_code == 2
        assert f"{flag}: " in result.stderr or f"where: {flag}" in result.stderr


@pytest.mark.parametrize(
    ("short", "long"), [("-d", "--dataset"), ("-bs", "--batch-size"), ("-msl", "--max-sequence-length")]
)
def test_short_ones_are_the_long_ones(short: str, long: str) -> None:
    assert f"{long}: 99 -> " in train("fedavg", short, "99").stderr


def test_a_zero_is_a_value_too() -> None:
    assert "where: --batch-size (local.batch_size)" in train("fedavg", "-bs", "0").stderr


def test_what_is_no_number_is_rejected() -> None:
    assert "--num_rounds" in train("fedavg", "--num_rounds", "many").stderr


@pytest.mark.parametrize("arguments", [[], ["fedavg", "-m", "VT5"], ["-m", "nowhere"]])
def test_one_config_is_named(arguments: list[str]) -> None:
    result = train(*arguments)
    assert result.exit_code == 2
    assert "E_CONFIGURATION" in result.stderr


def test_a_model_config_is_found_as_in_the_official_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs" / "models").mkdir(parents=True)
    (tmp_path / "configs" / "models" / "VT5.yml").write_text("model_name: VT5\nlearning: fast\n")
    monkeypatch.chdir(tmp_path)
    assert "where: VT5.yml, learning" in train("-m", "VT5").stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_reported() -> None:
    assert "--set device=cpu" in train("fedavg", "--set", "device=cuda").stderr
