"""Devices over processes, and over the examples of a step; the CPU stands for each of them."""

import json
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.commands.main import app
from starter_kit.engines.devices import chosen_devices, devices_of_process
from starter_kit.engines.processes import in_processes
from starter_kit.learning.concurrent_learner import ConcurrentLearner
from starter_kit.learning.local_training import Learner
from starter_kit.learning.replicas import Replicas
from starter_kit.runs import round_secret
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import in_process_on
from starter_kit.settings.configuration import load_settings
from tests.services.forked import server
from tests.starter_kit.engines.engine_runs import quick_settings, run, trained_tensor
from tests.starter_kit.training_runs import FEW_STEPS, trained

CPU = torch.device("cpu")
SALTED = ("annex_body_sha256", "h", "signature")
OWN = """
from starter_kit.methods import client_dp


class Settings(client_dp.Settings):
    pass
"""
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


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many devices trained how many providers, for each client that several devices worked for."""
    counts: list[tuple[int, int]] = []
    changes = ConcurrentLearner.provider_changes

    def counted(
        self: ConcurrentLearner, weights: Tensor, providers: Mapping[str, Sequence[int]], *more: object
    ) -> Iterator[Tensor]:
        counts.append((len(self._learners), len(providers)))
        return changes(self, weights, providers, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(ConcurrentLearner, "provider_changes", counted)
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


@pytest.mark.parametrize("config", ["client-dp", "laplace-fedavg", "laplace-iadmm"])
def test_a_private_run_that_trains_no_providers_has_one_device_for_each_process(
    base: Path, data: Path, config: str
) -> None:
    settings = load_settings(config, ["delta=1e-3"] if config == "client-dp" else [])
    assert chosen_devices("cpu,cpu", settings, 2) == [CPU, CPU]
    with pytest.raises(ProblemError) as rejected:
        chosen_devices("cpu,cpu", settings, 1)
    assert rejected.value.problem.where == "--devices"
    assert f"{config} is private" in str(rejected.value.problem.expected)
    assert "trains no providers" in str(rejected.value.problem.expected)
    assert "trains_providers" not in str(rejected.value.problem.next_step)
    assert rejected.value.problem.found == "2 devices, --processes 1"
    setup = RunSetup(settings, data=data, base=base)
    with pytest.raises(ProblemError, match="--devices"):
        setup.participant(lambda done, total: None, devices=[CPU, CPU])


def test_a_private_method_in_a_file_says_whether_it_trains_providers(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    loaded = load_settings("client-dp", [f"method={file}", "delta=1e-3"])
    with pytest.raises(ProblemError) as rejected:
        chosen_devices("cpu,cpu", loaded, 1)
    assert "trains_providers" in str(rejected.value.problem.next_step)
    file.write_text(OWN.replace("pass", "trains_providers = True"))
    loaded = load_settings("client-dp", [f"method={file}", "delta=1e-3"])
    assert chosen_devices("cpu,cpu", loaded, 1) == [CPU, CPU]


def recorded(folder: RunFolder) -> list[dict[str, object]]:
    """The lines of a training record, the last one without what the salt of the annex changes."""
    record = folder.file(ArtifactKind.TRAINING_RECORD)
    *lines, last = [json.loads(line) for line in record.read_text().splitlines()]
    return [*lines, {name: value for name, value in last.items() if name not in SALTED}]


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("centralized-dp", []),
        ("fl-provider-dp", []),
        ("dp-lora", ["local.providers_at_once=1", "sampling.provider_rate=0.9"]),
    ],
)
def test_a_private_run_on_several_devices_releases_what_it_releases_on_one(
    base: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: list[tuple[int, int]],
    config: str,
    changes: list[str],
) -> None:
    # With the secret of a run, its coins and its noise are the same again.
    monkeypatch.setattr(round_secret, "token_bytes", lambda count: bytes(range(count)))
    changes = [*changes, "replayable=true"]
    one = trained(config, base, data, tmp_path / "one", changes)
    assert calls == []
    two = trained(config, base, data, tmp_path / "two", changes, open_engine=in_process_on([CPU] * 2))
    assert {devices for devices, _ in calls} == {2}
    assert max(providers for _, providers in calls) > 1
    assert (one.path / "model.safetensors").read_bytes() == (two.path / "model.safetensors").read_bytes()
    lines = recorded(one)
    assert len(lines) >= 4
    assert lines == recorded(two)


def test_processes_train_providers_on_several_devices_each(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: server)
    monkeypatch.setattr(round_secret, "token_bytes", lambda count: bytes(range(count)))
    one = trained("fl-provider-dp", base, data, tmp_path / "one", ["replayable=true"])
    engine = in_processes(2, data=data, base=base, devices=[CPU] * 4)
    apart = trained("fl-provider-dp", base, data, tmp_path / "apart", ["replayable=true"], open_engine=engine)
    assert recorded(one) == recorded(apart)


def test_where_providers_train_one_after_another_the_run_says_why(
    base: Path, data: Path, capsys: pytest.CaptureFixture[str], calls: list[tuple[int, int]]
) -> None:
    setup = RunSetup(
        load_settings("fl-provider-dp", [*FEW_STEPS, "local.hook=fedprox"]), data=data, base=base
    )
    learner = setup.participant(lambda done, total: None, devices=[CPU, CPU])._learner
    assert type(learner) is Learner
    assert "all providers train on cpu: local.hook fedprox is a plug-in" in capsys.readouterr().err


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


@pytest.mark.parametrize("method", ["fedavg", "adaptive-clipping"])
def test_pfl_train_takes_devices(
    base: Path, data: Path, tmp_path: Path, shared: list[int], calls: list[tuple[int, int]], method: str
) -> None:
    words = [
        "train",
        method if method == "fedavg" else f"plugins/{method}",
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
    assert shared == ([2] if method == "fedavg" else [])
    assert {devices for devices, _ in calls} == (set() if method == "fedavg" else {2})
    assert (tmp_path / "run" / "summary.json").is_file()
