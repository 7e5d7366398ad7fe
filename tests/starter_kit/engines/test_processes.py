import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.processes import in_processes
from starter_kit.runs.progress import Watcher
from tests.services.forked import server
from tests.starter_kit.engines.engine_runs import quick_settings, run, trained_tensor

# A method as a user writes one, beside its config; `{fault}` is what happens to client 1 in round 2.
METHOD = """
import os, signal
from dataclasses import replace
from starter_kit.methods import fedavg
from evaluator.errors import ErrorCode, ProblemError

class Faulty(fedavg.FedAvg):
    def client_update(self, task):
        if (task.round, task.client.id) == (2, 1):
            {fault}
        return super().client_update(task)

class Settings(fedavg.Settings):
    def plan(self, clients):
        return replace(super().plan(clients), method=Faulty(self.clients_per_round, self.local))
"""


class Counting(Watcher):
    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.clients = 0
        self.last_page = (0, 0)

    def pages(self, done: int, total: int) -> None:
        self.last_page = done, total

    def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
        self.clients += 1
        self.pids |= {child.pid for child in multiprocessing.active_children() if child.pid}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As many threads here as in each of the engine's processes, or sums of floats would differ."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that have loaded torch already; what a client rejects is tested with a spawned one."""
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: server)


def faulty_config(folder: Path, fault: str) -> str:
    (folder / "faulty.py").write_text(METHOD.replace("{fault}", fault))
    config = folder / "faulty.yaml"
    config.write_text(
        "{method: faulty.py, experiment: faulty, rounds: 2, clients_per_round: 3, local: {learning_rate: 0.1}}"
    )
    return str(config)


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.usefixtures("forked")
def test_processes_give_the_same_as_one_process_to_the_bit(base: Path, data: Path, tmp_path: Path) -> None:
    # The optimizer keeps statistics from round to round and the codec what it left out: without either, round 2 would
    # differ. The codec is a file of one's own, which the processes load as well.
    (tmp_path / "own.py").write_text(
        "from starter_kit.plugins.codecs import topk\nclass Codec(topk.Codec): pass\n"
    )
    changes = [
        f"codec={{type: {tmp_path / 'own.py'}, fraction: 0.2}}",
        "clients_per_round=3",
        "rounds=3",
        "local.optimizer=shampoo",
        "local.shampoo.statistics_every=1",
    ]
    settings = quick_settings("fedavg", [*changes, "local.shampoo.roots_every=1", "local.learning_rate=1.0"])
    watcher = Counting()
    engine = in_processes(2, data=data, base=base)
    apart = run(settings, base, data, tmp_path / "apart", engine, watcher=watcher)
    together = run(settings, base, data, tmp_path / "together")
    assert torch.equal(trained_tensor(apart), trained_tensor(together))
    log = "communication_log.csv"
    assert (apart.path / log).read_bytes() == (together.path / log).read_bytes()
    assert watcher.clients == 3 * 3
    assert watcher.last_page == (2 * 6, 2 * 6)  # each process reads all pages
    assert len(watcher.pids) == 2
    assert all(ended(pid) for pid in watcher.pids)


@pytest.mark.usefixtures("forked")
def test_a_process_that_dies_ends_the_run_and_leaves_none_behind(
    base: Path, data: Path, tmp_path: Path
) -> None:
    settings = quick_settings(faulty_config(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)"))
    watcher = Counting()
    with pytest.raises(ProblemError, match="status -9") as rejected:
        run(settings, base, data, tmp_path / "run", in_processes(2, data=data, base=base), watcher=watcher)
    assert rejected.value.problems[0].code is ErrorCode.CLIENTS_LOST
    assert multiprocessing.active_children() == []
    assert watcher.pids
    assert all(ended(pid) for pid in watcher.pids)


def test_what_a_client_rejects_is_reported_as_it_is(base: Path, data: Path, tmp_path: Path) -> None:
    fault = "raise ProblemError.of(ErrorCode.SECURE_AGGREGATION, where='client 1', found='a fault')"
    settings = quick_settings(faulty_config(tmp_path, fault))
    with pytest.raises(ProblemError) as rejected:
        run(settings, base, data, tmp_path / "run", in_processes(1, data=data, base=base))
    problem = rejected.value.problems[0]
    assert (problem.code, problem.where) == (ErrorCode.SECURE_AGGREGATION, "client 1")


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("fault", "found", "above"), [("raise ZeroDivisionError", "ZeroDivisionError", 0), ("return", "None", 2)]
)
def test_an_error_in_the_participants_code_is_reported_with_its_line(
    base: Path, data: Path, tmp_path: Path, fault: str, found: str, above: int
) -> None:
    settings = quick_settings(faulty_config(tmp_path, fault))
    with pytest.raises(ProblemError) as rejected:
        run(settings, base, data, tmp_path / "run", in_processes(1, data=data, base=base))
    problem = rejected.value.problems[0]
    line = 1 + METHOD[: METHOD.index("{fault}")].count("\n") - above
    assert (problem.code, problem.found) == (ErrorCode.CONFIGURATION, found)
    assert problem.where == f"{tmp_path / 'faulty.py'}, line {line}"


@pytest.mark.usefixtures("forked")
def test_a_method_that_is_changed_while_a_run_starts_is_not_run_in_two_versions(
    base: Path, data: Path, tmp_path: Path
) -> None:
    settings = quick_settings(faulty_config(tmp_path, "pass"))
    faulty_config(tmp_path, "return None")
    with pytest.raises(ProblemError, match="as it was when the run was started"):
        run(settings, base, data, tmp_path / "run", in_processes(2, data=data, base=base))
    assert multiprocessing.active_children() == []
