"""Federations of real processes on the loopback interface: server, SuperLink, nodes and SuperNodes."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.communication.log import read_log
from starter_kit.engines.flower.address import free_port
from starter_kit.runs.folder import RunFolder
from tests.starter_kit.engines.engine_runs import QUICK, quick_settings, run, trained_tensor
from tests.starter_kit.engines.parties import PATIENCE_S, Parties, changes

pytestmark = pytest.mark.e2e

DOCS = Path(__file__).parents[3] / "docs" / "distributed.md"
REPLY_S = 20

# FedAvg, whose client 2 stops in the middle of round 2, and leaves a file as a sign of it.
STOPPING = """
import time
from dataclasses import replace
from pathlib import Path
from starter_kit.methods import fedavg

class Stopping(fedavg.FedAvg):
    def client_update(self, task):
        if (task.round, task.client.id) == (2, 2):
            Path(__file__).with_name("stopped").touch()
            time.sleep(300)
        return super().client_update(task)

class Settings(fedavg.Settings):
    def plan(self, clients):
        return replace(super().plan(clients), method=Stopping(self.clients_per_round, self.local))
"""


@pytest.fixture
def parties(
    data: Path, base: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Parties]:
    federation = Parties(tmp_path, tmp_path_factory.mktemp("logs"), data, base)
    try:
        yield federation
    finally:
        federation.end()


def commands(name: str) -> str:
    """A block of shell commands of docs/distributed.md."""
    block = re.search(rf"^```sh {name}\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    assert block
    return block[1]


def answered(log: Path) -> set[tuple[int, int]]:
    """Rounds and clients, of those whose updates came."""
    seen: set[tuple[int, int]] = set()
    read_log(
        log,
        clients=3,
        max_rounds=3,
        on_exchange=lambda e: seen.add((e.round, e.client)) if e.bytes_up else None,
    )
    return seen


@pytest.mark.slow
def test_server_and_nodes_train_as_one_machine_would(
    parties: Parties, data: Path, base: Path, tmp_path: Path
) -> None:
    # The optimizer keeps statistics from round to round: without what the nodes keep, round 2 would differ.
    given = ["clients_per_round=3", "local.optimizer=shampoo", "local.shampoo.statistics_every=1"]
    given += ["local.shampoo.roots_every=1", "local.learning_rate=1.0"]
    same = ["fedavg", *changes([*QUICK, *given]), "--wait", str(PATIENCE_S)]
    port = str(free_port())
    server = parties.start("server", *same, "--port", port, "--out", "run")
    node = ["node", *same, "--server", f"127.0.0.1:{port}"]
    nodes = [parties.start(*node, "--client", "0", "--client", "1"), parties.start(*node, "--client", "2")]
    parties.await_file(tmp_path / "run")
    for process in (server, *nodes):
        status, printed = process.ended()
        assert status == 0, printed
    together = run(quick_settings("fedavg", given), base, data, tmp_path / "together")
    apart = RunFolder(tmp_path / "run")
    assert torch.allclose(trained_tensor(apart), trained_tensor(together), rtol=0, atol=1e-5)
    assert parties.look() == []
    assert {path.name for path in tmp_path.iterdir()} - {"home"} == {"run", "together"}
    assert not (tmp_path / "home" / ".flwr").exists()


@pytest.mark.slow
def test_a_run_continues_without_a_node_that_is_killed_and_admits_no_stranger(
    parties: Parties, tmp_path: Path
) -> None:
    subprocess.run(
        ["bash", "-eu", "-c", commands("certificates") + commands("keys")], cwd=tmp_path, check=True
    )
    (tmp_path / "stopping.py").write_text(STOPPING)
    (tmp_path / "stopping.yaml").write_text(
        "{method: stopping.py, experiment: stopping, rounds: 3, clients_per_round: 3, local: {learning_rate: 0.1}}"
    )
    same = ["stopping.yaml", *changes([*QUICK, "rounds=3"]), "--wait", str(PATIENCE_S)]
    port = str(free_port())
    listening = (
        f"--port {port} --certificate server.pem --certificate-key server.key --authority authority.pem"
    )
    server = parties.start(
        "server",
        *same,
        *listening.split(),
        "--node-keys",
        "nodes.pub",
        "--out",
        "run",
        "--timeout",
        str(REPLY_S),
    )
    node = ["node", *same, "--server", f"127.0.0.1:{port}", "--authority", "authority.pem"]
    staying = parties.start(*node, "--client", "0", "--client", "1", "--node-key", "node-a")
    killed = parties.start(*node, "--client", "2", "--node-key", "node-b")
    stranger = parties.start(*node, "--client", "2", "--home", "stranger")
    parties.await_file(tmp_path / "stopped")
    os.kill(parties.supernode_of(killed), signal.SIGKILL)
    parties.await_file(tmp_path / "run")
    status, printed = server.ended()
    assert status == 0, printed
    assert f"round 2: client 2 is lost (no reply within {REPLY_S} s)" in printed
    assert "round 3: client 2 is lost (its node is away)" in printed
    assert answered(tmp_path / "run" / "communication_log.csv") == {
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
    }
    assert staying.wait(PATIENCE_S) == 0
    status, rejected = stranger.ended()
    assert status == 2, rejected
    assert "E_CONFIGURATION" in rejected
    assert "the server's --node-keys lack the key of this node" in rejected
