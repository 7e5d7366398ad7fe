"""Devices over processes; the CPU stands for each of them."""

import multiprocessing
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.main import app
from starter_kit.engines.devices import chosen_devices
from starter_kit.engines.processes import in_processes
from tests.services.forked import server
from tests.starter_kit.engines.engine_runs import quick_settings, run, trained_tensor
from tests.starter_kit.training_runs import FEW_STEPS

CPU = torch.device("cpu")


def test_a_list_of_devices_is_read_as_it_is_written() -> None:
    assert chosen_devices("", "cpu", 1) == []
    assert chosen_devices("cpu, cpu", "cpu", 2) == [CPU, CPU]


@pytest.mark.parametrize("names", ["gpu", "cuda:0", "cpu,", "cpu,cuda:1", "cpu cpu"])
def test_a_list_of_other_devices_is_rejected(names: str) -> None:
    with pytest.raises(ProblemError) as rejected:
        chosen_devices(names, "cpu", 2)
    assert rejected.value.problem.code is ErrorCode.CONFIGURATION
    assert rejected.value.problem.where == "--devices"


def test_more_devices_than_processes_are_rejected() -> None:
    with pytest.raises(ProblemError) as rejected:
        chosen_devices("cpu,cpu", "cpu", 1)
    assert rejected.value.problem.where == "--devices"
    assert rejected.value.problem.expected == "at most one device for each process"
    assert rejected.value.problem.found == "2 devices, --processes 1"


def test_processes_that_take_devices_in_turn_train_what_one_process_trains(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: server)
    settings = quick_settings("fedavg", ["clients_per_round=2"])
    one = run(settings, base, data, tmp_path / "one")
    engine = in_processes(2, data=data, base=base, devices=[CPU])
    assert torch.equal(
        trained_tensor(run(settings, base, data, tmp_path / "apart", engine)), trained_tensor(one)
    )


def test_pfl_train_takes_devices(base: Path, data: Path, tmp_path: Path) -> None:
    words = ["train", "fedavg", "--data", data, "--base", base, "--out", tmp_path / "run", "--devices", "cpu"]
    changes = [word for change in FEW_STEPS for word in ("--set", change)]
    result = CliRunner().invoke(app, [*map(str, words), *changes])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run" / "summary.json").is_file()
