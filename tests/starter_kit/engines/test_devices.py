"""Devices over processes, and over the examples of a step; the CPU stands for each of them."""

import multiprocessing
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.main import app
from starter_kit.engines.devices import chosen_devices, devices_of_process
from starter_kit.engines.processes import in_processes
from starter_kit.learning.replicas import Replicas
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import in_process_on
from starter_kit.settings.configuration import load_settings
from tests.services.forked import server
from tests.starter_kit.engines.engine_runs import quick_settings, run, trained_tensor
from tests.starter_kit.training_runs import FEW_STEPS

CPU = torch.device("cpu")
# Steps in which rounding stays small.
CALM = ["local.optimizer=sgd", "local.learning_rate=0.1", "clients_per_round=2"]


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of devices of each process whose steps are shared."""
    counts: list[int] = []
    init = Replicas.__init__

    def counted(self: Replicas, model: object, devices: list[torch.device]) -> None:
        counts.append(len(devices))
        init(self, model, devices)  # type: ignore[arg-type]

    monkeypatch.setattr(Replicas, "__init__", counted)
    return counts


def test_a_list_of_devices_is_read_as_it_is_written() -> None:
    settings = load_settings("fedavg")
    assert chosen_devices("", settings, 1) == []
    assert chosen_devices("cpu, cpu", settings, 1) == [CPU, CPU]


@pytest.mark.parametrize("names", ["gpu", "cuda:0", "cpu,", "cpu,cuda:1", "cpu cpu"])
def test_a_list_of_other_devices_is_rejected(names: str) -> None:
    with pytest.raises(ProblemError) as rejected:
        chosen_devices(names, load_settings("fedavg"), 1)
    assert rejected.value.problem.code is ErrorCode.CONFIGURATION
    assert rejected.value.problem.where == "--devices"


def test_a_private_run_has_one_device_for_each_process(base: Path, data: Path) -> None:
    settings = load_settings("fl-provider-dp", FEW_STEPS)
    assert chosen_devices("cpu,cpu", settings, 2) == [CPU, CPU]
    with pytest.raises(ProblemError, match="--devices"):
        chosen_devices("cpu,cpu", settings, 1)
    setup = RunSetup(settings, data=data, base=base)
    with pytest.raises(ProblemError, match="--devices"):
        setup.participant(lambda done, total: None, devices=[CPU, CPU])


def test_devices_go_round_over_processes() -> None:
    four = [torch.device("cuda", number) for number in range(4)]
    assert devices_of_process(1, 2, four) == [four[1], four[3]]
    assert [devices_of_process(number, 3, four[:2]) for number in range(3)] == [
        [four[0]],
        [four[1]],
        [four[0]],
    ]


@pytest.mark.parametrize("method", ["fedavg", "centralized"])
def test_one_client_trains_on_two_devices_what_it_trains_on_one(
    base: Path, data: Path, tmp_path: Path, shared: list[int], method: str
) -> None:
    settings = quick_settings(method, CALM if method == "fedavg" else CALM[:2])
    one = run(settings, base, data, tmp_path / "one")
    assert shared == []
    two = run(settings, base, data, tmp_path / "two", in_process_on([CPU, CPU]))
    assert shared == [2]
    assert not torch.equal(trained_tensor(two), RunSetup(settings, data=data, base=base).model.start)
    assert close(trained_tensor(two), trained_tensor(one))


def test_a_private_run_computes_the_same_with_a_device_as_without(
    base: Path, data: Path, tmp_path: Path, shared: list[int]
) -> None:
    setup = RunSetup(load_settings("fl-provider-dp", FEW_STEPS), data=data, base=base)
    learners = [
        setup.participant(lambda done, total: None, devices=devices)._learner for devices in ([], [CPU])
    ]
    changes = [
        learner.train(setup.model.start, [0, 1, 2], setup.settings.local, setup.stream).change  # type: ignore[attr-defined]
        for learner in learners
    ]
    assert torch.equal(*changes)
    assert shared == []


def test_processes_share_the_devices(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: server)
    settings = quick_settings("fedavg", CALM)
    one = run(settings, base, data, tmp_path / "one")
    engine = in_processes(2, data=data, base=base, devices=[CPU] * 4)
    assert close(trained_tensor(run(settings, base, data, tmp_path / "apart", engine)), trained_tensor(one))


def test_pfl_train_takes_devices(base: Path, data: Path, tmp_path: Path, shared: list[int]) -> None:
    words = [
        "train",
        "fedavg",
        "--data",
        data,
        "--base",
        base,
        "--out",
        tmp_path / "run",
        "--devices",
        "cpu,cpu",
    ]
    changes = [word for change in FEW_STEPS for word in ("--set", change)]
    result = CliRunner().invoke(app, [*map(str, words), *changes])
    assert result.exit_code == 0, result.output
    assert shared == [2]
    assert (tmp_path / "run" / "summary.json").is_file()
